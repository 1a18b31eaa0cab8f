# Signals to the agent and its supervisors. Read from a file and not by handlers: perl runs those between its own operations,
# so a signal that comes just before a system call that waits would wait with it. For a supervisor that is not ready yet
# they are kept, too.
package Agent::Signals;
use strict;
use Exporter 'import';
use Kernel 'kernel_numbers';
our @EXPORT_OK = qw(hear hold_signals open_bell release_signals);

my ($SIGPROCMASK, $SIGNALFD) = kernel_numbers(qw(rt_sigprocmask signalfd4));
my ($BLOCK, $UNBLOCK, $CLOEXEC) = (0, 1, 02000000);
my %NAMES = (10 => 'USR1', 12 => 'USR2', 17 => 'CHLD');
my $signals = 0;
$signals |= 1 << $_ - 1 for keys %NAMES;
$signals = pack 'Q', $signals;

sub hold_signals { syscall $SIGPROCMASK, $BLOCK, $signals, 0, 8 }

sub release_signals { syscall $SIGPROCMASK, $UNBLOCK, $signals, 0, 8 }

# Each process opens its own: whose signals a copy tells of after a fork is not the same in every kernel.
sub open_bell {
  my $number = syscall $SIGNALFD, -1, $signals, 8, $CLOEXEC;
  return if $number < 0 || !open my $file, '<&=', $number;
  return $file;
}

# Waits for a signal and returns its name.
sub hear {
  my ($from) = @_;
  # Room for one: 128 bytes, and a little more in gVisor.
  my $got = sysread $from, my ($ring), 255;
  return $got ? $NAMES{ unpack 'L', $ring } : '';
}

1;
