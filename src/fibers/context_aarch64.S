/* The switch of context.hpp for aarch64, AAPCS64: x19 to x30 and the lower halves of v8 to v15 outlive a call. FPCR is
 * not here: see float_modes.hpp.
 *
 * A paused context is the address of its saved registers, 160 bytes on its own stack.
 */
#if defined(__aarch64__) && !defined(__ILP32__) && !defined(HEDDLE_FIBERS_ON_BOOST)
    .text

/* Handoff switch_context(Context* save, Context to, Handoff handoff): x0, x1, x2 and x3; the hand-off arrives
 * in x0 and x1. The unwind information is right on both sides of the switch, as both stacks have the same shape. */
    .globl heddle_context_switch
    .hidden heddle_context_switch
    .type heddle_context_switch, %function
    .balign 64
heddle_context_switch:
    .cfi_startproc
    hint #34                    /* bti c */
    sub sp, sp, #160
    .cfi_adjust_cfa_offset 160
    stp x29, x30, [sp]
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp x19, x20, [sp, #16]
    .cfi_rel_offset x19, 16
    .cfi_rel_offset x20, 24
    stp x21, x22, [sp, #32]
    .cfi_rel_offset x21, 32
    .cfi_rel_offset x22, 40
    stp x23, x24, [sp, #48]
    .cfi_rel_offset x23, 48
    .cfi_rel_offset x24, 56
    stp x25, x26, [sp, #64]
    .cfi_rel_offset x25, 64
    .cfi_rel_offset x26, 72
    stp x27, x28, [sp, #80]
    .cfi_rel_offset x27, 80
    .cfi_rel_offset x28, 88
    stp d8, d9, [sp, #96]
    .cfi_rel_offset d8, 96
    .cfi_rel_offset d9, 104
    stp d10, d11, [sp, #112]
    .cfi_rel_offset d10, 112
    .cfi_rel_offset d11, 120
    stp d12, d13, [sp, #128]
    .cfi_rel_offset d12, 128
    .cfi_rel_offset d13, 136
    stp d14, d15, [sp, #144]
    .cfi_rel_offset d14, 144
    .cfi_rel_offset d15, 152
    mov x4, sp
    str x4, [x0]
    mov sp, x1
    mov x0, x2
    mov x1, x3
    ldp d14, d15, [sp, #144]
    ldp d12, d13, [sp, #128]
    ldp d10, d11, [sp, #112]
    ldp d8, d9, [sp, #96]
    ldp x27, x28, [sp, #80]
    ldp x25, x26, [sp, #64]
    ldp x23, x24, [sp, #48]
    ldp x21, x22, [sp, #32]
    ldp x19, x20, [sp, #16]
    ldp x29, x30, [sp]
    add sp, sp, #160
    .cfi_def_cfa sp, 0
    .cfi_restore x29
    .cfi_restore x30
    .cfi_restore x19
    .cfi_restore x20
    .cfi_restore x21
    .cfi_restore x22
    .cfi_restore x23
    .cfi_restore x24
    .cfi_restore x25
    .cfi_restore x26
    .cfi_restore x27
    .cfi_restore x28
    .cfi_restore d8
    .cfi_restore d9
    .cfi_restore d10
    .cfi_restore d11
    .cfi_restore d12
    .cfi_restore d13
    .cfi_restore d14
    .cfi_restore d15
    ret
    .cfi_endproc
    .size heddle_context_switch, . - heddle_context_switch

/* Context make_context(void* top, void* fiber): a context that begins in heddle_context_begin with the fiber
 * in x19. */
    .globl heddle_context_make
    .hidden heddle_context_make
    .type heddle_context_make, %function
    .balign 16
heddle_context_make:
    .cfi_startproc
    hint #34                    /* bti c */
    and x0, x0, #-16
    sub x0, x0, #160
    adrp x2, heddle_context_begin
    add x2, x2, :lo12:heddle_context_begin
    stp xzr, x2, [x0]
    stp x1, xzr, [x0, #16]
    ret
    .cfi_endproc
    .size heddle_context_make, . - heddle_context_make

/* The outermost frame of a fiber. An undefined return address tells unwinders and debuggers that the stack ends. */
    .type heddle_context_begin, %function
    .balign 16
heddle_context_begin:
    .cfi_startproc
    .cfi_undefined x30
    hint #36                    /* bti j */
    mov x2, x1
    mov x1, x0
    mov x0, x19
    bl heddle_fiber_main
    brk #1
    .cfi_endproc
    .size heddle_context_begin, . - heddle_context_begin
#endif
    .section .note.GNU-stack, "", %progbits
