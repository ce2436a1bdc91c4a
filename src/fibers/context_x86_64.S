/* The switch of context.hpp for x86-64, System V.
 *
 * A paused context is the address of its saved registers, on its own stack, lowest first: r15 r14 r13 r12 rbx rbp,
 * then where it goes on. MXCSR and the x87 control word are not here: see float_modes.hpp.
 *
 * The way back is a `ret`. The processor predicts it by the calls of the stack that was left, and is right, since this
 * function is called from one place only (fiber.cpp); so it stays right for the callers that both sides share. With a
 * jump in its place each return of each caller would be predicted wrong (docs/FIBERS.md has figures). The stack of
 * return addresses that CET keeps is not switched: this file carries no .note.gnu.property, which tells the linker
 * that what it is part of runs without.
 */
#if defined(__x86_64__) && !defined(__ILP32__) && !defined(HEDDLE_FIBERS_ON_BOOST)
    .text

/* Handoff switch_context(Context* save, Context to, Handoff handoff): rdi, rsi, rdx and rcx; the hand-off
 * arrives in rax and rdx. The unwind information is right at each instruction, on both sides of the switch, as
 * both stacks have the same shape. */
    .globl heddle_context_switch
    .hidden heddle_context_switch
    .type heddle_context_switch, @function
    .balign 64
heddle_context_switch:
    .cfi_startproc
    endbr64
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rbp, 0
    pushq %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rbx, 0
    pushq %r12
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r12, 0
    pushq %r13
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r13, 0
    pushq %r14
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r14, 0
    pushq %r15
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r15, 0
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    movq %rdx, %rax
    movq %rcx, %rdx
    popq %r15
    .cfi_adjust_cfa_offset -8
    .cfi_restore r15
    popq %r14
    .cfi_adjust_cfa_offset -8
    .cfi_restore r14
    popq %r13
    .cfi_adjust_cfa_offset -8
    .cfi_restore r13
    popq %r12
    .cfi_adjust_cfa_offset -8
    .cfi_restore r12
    popq %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore rbx
    popq %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore rbp
    ret
    .cfi_endproc
    .size heddle_context_switch, . - heddle_context_switch

/* Context make_context(void* top, void* fiber): a context that begins in heddle_context_begin with the fiber
 * in r12. */
    .globl heddle_context_make
    .hidden heddle_context_make
    .type heddle_context_make, @function
    .balign 16
heddle_context_make:
    .cfi_startproc
    endbr64
    andq $-16, %rdi
    leaq heddle_context_begin(%rip), %rax
    movq %rax, -8(%rdi)
    xorl %eax, %eax
    movq %rax, -16(%rdi)
    movq %rax, -24(%rdi)
    movq %rsi, -32(%rdi)
    movq %rax, -40(%rdi)
    movq %rax, -48(%rdi)
    movq %rax, -56(%rdi)
    leaq -56(%rdi), %rax
    ret
    .cfi_endproc
    .size heddle_context_make, . - heddle_context_make

/* The outermost frame of a fiber. An undefined return address tells unwinders and debuggers that the stack ends. */
    .type heddle_context_begin, @function
    .balign 16
heddle_context_begin:
    .cfi_startproc
    .cfi_undefined rip
    endbr64
    movq %r12, %rdi
    movq %rax, %rsi
    call heddle_fiber_main
    ud2
    .cfi_endproc
    .size heddle_context_begin, . - heddle_context_begin
#endif
    .section .note.GNU-stack, "", %progbits
