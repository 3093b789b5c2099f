# A guest without an operating system: a boot sector.
#
# It fills 55 MiB, so that a migration has something to copy, then counts the
# interrupts of its timer (18 a second) at COUNTER: a guest that was migrated
# live counts on, one that was started again begins anew. Between two
# interrupts it sleeps.
        .set COUNTER, 0x600
        .code16
        .globl _start
_start: ljmp $0, $start
start:  cli
        xorw %ax, %ax
        movw %ax, %ds
        movw %ax, %ss
        movw $0x7c00, %sp
        movl $0, COUNTER
        # The line A20, then a segment of 4 GiB, and back to real mode.
        inb $0x92, %al
        orb $2, %al
        outb %al, $0x92
        lgdtl table
        movl %cr0, %eax
        orb $1, %al
        movl %eax, %cr0
        jmp 1f
1:      movw $8, %bx
        movw %bx, %fs
        andb $0xfe, %al
        movl %eax, %cr0
        jmp 2f
        # QEMU copies no pages of zeros.
2:      movl $0x100000, %edi
3:      movl %edi, %fs:(%edi)
        addl $0x1000, %edi
        cmpl $0x3800000, %edi
        jb 3b
        sti
4:      hlt
        incl COUNTER
        jmp 4b
        .balign 8
gdt:    .quad 0, 0x00cf92000000ffff
table:  .word 15
        .long gdt
        # One partition: Glance takes no boot sector without any.
        .org 446
        .byte 0x80, 0, 2, 0, 0x83, 0, 32, 32
        .long 1, 2047
        .org 510
        .word 0xaa55
