// Boxes in C, as S-Net calls them: the handle, and a tag each.
#pragma once

void* many(void* hnd, int n);  // box many ((<N>) -> (<X>) | (<X>, <E>)): n records, one of them with <E>
void* add(void* hnd, int x);   // box add ((<X>) -> (<X>))
void* last(void* hnd, int x, int e);  // box last ((<X>, <E>) -> (<X>))
void* another(void* hnd, int x);      // box another ((<X>) -> (<X>)): sends nothing
