# The helper process of a host: it starts programs and passes open files for the service. Its one argument is the number of sendmsg(2).
# The owner is src/system/helper/helper-process.ts.
#
# Frames come in on its input and go out on its output: a length, then fields, each behind its own length. The first field is the
# number of the request that the frame belongs to, the second says what it is.
#
# In:  run CWD OUTPUT-FILE MAX-BYTES ARGC ARGV... NAME=VALUE...   a program, in a session of its own; a script for this same Perl
#                                                                (-e, or a file beside this one) is run by a copy of this process
#      kill SIGNAL                                               its process group, unless it has ended
#      send SOCKET MESSAGE r:FILE|w:FILE...                      a message with open files, over a new connection
#      close                                                     that connection
# Out: ended STATUS STDOUT STDERR DROPPED                        of a program
#      data BYTES                                                that came back over a connection; none: its end
#      failed ERRNO                                              nothing has run, and nothing was sent
#
# It ends with its input, and leaves the programs that run to themselves.
use strict;
use Fcntl;
use POSIX ();
use Socket qw(:DEFAULT SOCK_NONBLOCK);

my $sendmsg = shift;
my ($beside) = $0 =~ m{^(.*/)};
my $GRACE = 1;         # seconds for which others may hold the output of a program that has ended
my $BACKSTOP = 0.05;   # a signal may come right before the wait for one begins
my (%watched, %jobs, %lines, $input);
$input = '';
$SIG{PIPE} = 'IGNORE';
pipe(my $woken, my $wake) or exit 1;
$SIG{CHLD} = sub { syswrite $wake, '.' };

sub tell_of {
  my $bytes = pack '(N/a*)*', @_;
  my $frame = pack('N', length $bytes) . $bytes;
  while (length $frame) {
    my $count = syswrite STDOUT, $frame;
    if (defined $count) { substr $frame, 0, $count, '' } elsif (!$!{EINTR}) { exit }
  }
}
sub watch { my ($handle, $then) = @_; $watched{fileno $handle} = [$handle, $then] }
sub forget { my $handle = shift; delete $watched{fileno $handle}; close $handle }

sub gather {
  my ($job, $handle, $kept) = @_;
  $job->{open} += 1;
  watch($handle, sub {
    my $count = sysread $handle, my $bytes, 65536;
    return if !defined $count && $!{EINTR};
    if (!$count) { forget($handle); $job->{open} -= 1; return }
    my $room = $job->{max} - length $$kept;
    $room = 0 if $room < 0;
    $$kept .= substr $bytes, 0, $room;
    $job->{dropped} += $count - $room if $count > $room;
  });
  push @{ $job->{handles} }, $handle;
}

# The text of a script for this Perl: one that is given, or that of a file beside this one.
sub script_of {
  my ($perl, $option, @rest) = @_;
  return if $perl ne $^X || !defined $option;
  return @rest if $option eq '-e';
  return if index($option, $beside) != 0 || $option !~ /\.pl$/;
  open my $file, '<', $option or return;
  local $/;
  return (scalar <$file>, @rest);
}

# The start of another Perl takes longer than what most scripts do.
sub play {
  $| = 1;
  eval shift;
  syswrite STDERR, $@ if length $@;
  POSIX::_exit(length $@ ? 255 : 0);
}

sub become {
  my ($cwd, $argv, $env, @stdio) = @_;
  POSIX::setsid();
  @SIG{qw(PIPE CHLD)} = ('DEFAULT') x 2;
  for (0 .. 2) { defined POSIX::dup2(fileno $stdio[$_], $_) or return }
  length $cwd == 0 or chdir $cwd or return;
  %ENV = map { split /=/, $_, 2 } @$env;
  if ((my $script, @ARGV) = script_of(@$argv)) { play($script) }
  no warnings 'exec';
  exec { $argv->[0] } @$argv;
}

sub run {
  my ($id, $cwd, $file, $max, $argc, @rest) = @_;
  my @argv = splice @rest, 0, $argc;
  my $job = { id => $id, max => $max, open => 0, dropped => 0, out => '', err => '', handles => [] };
  my ($none, @own, @its);
  open $none, '<', '/dev/null' or return tell_of($id, 'failed', 0 + $!);
  if (length $file) {
    sysopen my $to, $file, O_WRONLY | O_APPEND | O_CREAT, 0600 or return tell_of($id, 'failed', 0 + $!);
    @its = ($to, $to);
  } else {
    for (0, 1) { pipe($own[$_], $its[$_]) or return tell_of($id, 'failed', 0 + $!) }
  }
  pipe(my $why, my $say) or return tell_of($id, 'failed', 0 + $!);
  my $pid = fork;
  defined $pid or return tell_of($id, 'failed', 0 + $!);
  if ($pid == 0) {
    become($cwd, \@argv, \@rest, $none, @its);
    syswrite $say, pack 'N', 0 + $!;
    POSIX::_exit(127);
  }
  gather($job, $own[0], \$job->{out}) if $own[0];
  gather($job, $own[1], \$job->{err}) if $own[1];
  @$job{qw(pid why)} = ($pid, $why);
  $jobs{$id} = $job;
}

sub conclude {
  my $job = shift;
  delete $jobs{ $job->{id} };
  forget($_) for grep { defined fileno $_ } @{ $job->{handles} };
  return tell_of($job->{id}, 'failed', unpack 'N', $job->{errno}) if $job->{errno};
  tell_of(@$job{qw(id)}, 'ended', @$job{qw(status out err dropped)});
}

sub reap {
  while ((my $pid = waitpid -1, POSIX::WNOHANG()) > 0) {
    my $status = $?;
    my ($job) = grep { $_->{pid} == $pid } values %jobs or next;
    # Both ends of it are closed by now: it holds why the program was not started, or nothing.
    sysread $job->{why}, $job->{errno}, 4;
    close $job->{why};
    @$job{qw(status until)} = ($status, clock() + $GRACE);
  }
}
sub clock { (POSIX::times())[0] / POSIX::sysconf(POSIX::_SC_CLK_TCK()) }

sub deliver {
  my ($id, $path, $message, @names) = @_;
  my @files;
  for (@names) {
    my ($mode, $name) = split /:/, $_, 2;
    # Neither end of a fifo waits for the other; who is given it finds it as any other file.
    sysopen my $file, $name, ($mode eq 'r' ? O_RDONLY : O_WRONLY) | O_NONBLOCK or return tell_of($id, 'failed', 0 + $!);
    fcntl $file, F_SETFL, (fcntl $file, F_GETFL, 0) & ~O_NONBLOCK;
    push @files, $file;
  }
  socket my $line, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0 or return tell_of($id, 'failed', 0 + $!);
  connect $line, pack_sockaddr_un($path) or return tell_of($id, 'failed', 0 + $!);
  my $rights = pack 'Q i i i*', 16 + 4 * @files, SOL_SOCKET, SCM_RIGHTS, map { fileno $_ } @files;
  $rights .= "\0" x (-length($rights) % 8);
  my $pieces = pack 'P Q', $message, length $message;
  my $header = pack 'Q Q P Q P Q Q', 0, 0, $pieces, 1, $rights, length $rights, 0;
  my $sent = syscall $sendmsg, fileno $line, $header, 0;
  # A part of a message is no request yet, and what hears the end of the line forgets it.
  return tell_of($id, 'failed', $sent < 0 ? 0 + $! : POSIX::EMSGSIZE()) if $sent != length $message;
  $lines{$id} = $line;
  watch($line, sub {
    my $count = sysread $line, my $bytes, 65536;
    return if !defined $count && ($!{EINTR} || $!{EAGAIN});
    tell_of($id, 'data', $count ? $bytes : '');
    if (!$count) { delete $lines{$id}; forget($line) }
  });
}

my %verbs = (
  run => \&run,
  send => \&deliver,
  kill => sub { my ($id, $signal) = @_; my $job = $jobs{$id}; kill $signal, -$job->{pid} if $job && !defined $job->{status} },
  close => sub { my $line = delete $lines{ $_[0] }; forget($line) if $line },
);

watch(\*STDIN, sub {
  my $count = sysread STDIN, $input, 65536, length $input;
  return if !defined $count && $!{EINTR};
  exit if !$count;
  while (length $input >= 4 && length $input >= 4 + unpack 'N', $input) {
    my ($id, $verb, @rest) = unpack '(N/a*)*', substr $input, 4, unpack 'N', $input;
    substr $input, 0, 4 + unpack('N', $input), '';
    $verbs{$verb}->($id, @rest);
  }
});
watch($woken, sub { sysread $woken, my $bytes, 4096 });

while (1) {
  my $ready = '';
  vec($ready, $_, 1) = 1 for keys %watched;
  my $found = select $ready, undef, undef, %jobs ? $BACKSTOP : undef;
  if ($found > 0) {
    for (keys %watched) { $watched{$_}[1]->() if vec($ready, $_, 1) && $watched{$_} }
  }
  next if !%jobs;
  reap();
  for my $job (values %jobs) {
    conclude($job) if defined $job->{status} && ($job->{open} == 0 || clock() > $job->{until});
  }
}
