/**
 * A static x86-64 program of 424 bytes: it opens the file that its first argument names (at least one page long), maps its
 * first page MAP_SHARED, writes "mapped" at its start and exits without msync, munmap or close. Its code:
 *
 *     mov 16(%rsp), %rdi; mov $2, %eax; mov $2, %esi; xor %edx, %edx; syscall      open(argv[1], O_RDWR)
 *     test %eax, %eax; js fail; mov %rax, %r8
 *     mov $9, %eax; xor %edi, %edi; mov $4096, %esi; mov $3, %edx; mov $1, %r10d; xor %r9d, %r9d; syscall      mmap
 *     cmp $-4095, %rax; jae fail; movl $0x7070616d, (%rax); movw $0x6465, 4(%rax)
 *     xor %edi, %edi; jmp out; fail: mov $1, %edi; out: mov $60, %eax; syscall      exit
 */
export const MMAP_WRITE = Buffer.from(
  "f0VMRgIBAQAAAAAAAAAAAAIAPgABAAAAeABAAAAAAABAAAAAAAAAAOgAAAAAAAAAAAAAAEAAOAABAEAAAwACAAEAAAAFAAAAeAAA" +
    "AAAAAAB4AEAAAAAAAHgAQAAAAAAAWgAAAAAAAABaAAAAAAAAAAEAAAAAAAAASIt8JBC4AgAAAL4CAAAAMdIPBYXAeDdJicC4CQAA" +
    "ADH/vgAQAAC6AwAAAEG6AQAAAEUxyQ8FSD0B8P//cxDHAG1hcHBmx0AEZWQx/+sFvwEAAAC4PAAAAA8FAC5zaHN0cnRhYgAudGV4" +
    "dAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAALAAAA" +
    "AQAAAAYAAAAAAAAAeABAAAAAAAB4AAAAAAAAAFoAAAAAAAAAAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAQAAAAMAAAAAAAAAAAAA" +
    "AAAAAAAAAAAA0gAAAAAAAAARAAAAAAAAAAAAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAA==",
  "base64",
);
