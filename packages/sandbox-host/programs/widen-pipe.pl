# Lets the pipe behind a name hold a number of bytes. Arguments: NAME BYTES.
# The owner is src/system/fifo/fifo-supply.ts.
use strict;
use Fcntl;

my $F_SETPIPE_SZ = 1031;    # Fcntl has no name for it
sysopen my $pipe, $ARGV[0], O_NONBLOCK or die;
fcntl $pipe, $F_SETPIPE_SZ, 0 + $ARGV[1] or die;
