# Sets a filter for system calls and becomes the rest of the arguments. If the kernel refuses the filter, the program runs without it.
# Arguments: the number of prctl(2), the filter in hexadecimal, the program and its arguments.
# The owner is src/provisioner/local-process/without-membarrier.ts.
use strict;

my ($PR_SET_SECCOMP, $SECCOMP_MODE_FILTER) = (22, 2);
my ($prctl, $filter) = (0 + shift, pack 'H*', shift);
my $program = pack 'S x![P] P', length($filter) / 8, $filter;
syscall $prctl, $PR_SET_SECCOMP, $SECCOMP_MODE_FILTER, $program, 0, 0;
{
  no warnings 'exec';
  exec { $ARGV[0] } @ARGV;
}
die "$ARGV[0]: $!\n";
