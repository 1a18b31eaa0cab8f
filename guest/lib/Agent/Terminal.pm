# A terminal for a command.
package Agent::Terminal;
use strict;
use Exporter 'import';
use Kernel 'kernel_numbers';
our @EXPORT_OK = qw(enter_terminal open_terminal resize_terminal);

my ($SETSID) = kernel_numbers('setsid');
my ($UNLOCK, $GET_NUMBER, $SET_SIZE, $MAKE_CONTROLLING) = (0x40045431, 0x80045430, 0x5414, 0x540E);

# Read and write, and do not become the terminal of the agent itself.
my $WITHOUT_CONTROL = 0402;

# Our end, the name of the other one, and that one, too: as long as somebody has it open the terminal does not hang up on a
# program that closes it and opens it again. `size` is rows and columns.
sub open_terminal {
  my ($size) = @_;
  open my $master, '+<', '/dev/ptmx' or return;
  my ($unlocked, $number) = (pack('i', 0), pack('i', 0));
  ioctl $master, $UNLOCK, $unlocked or return;
  ioctl $master, $GET_NUMBER, $number or return;
  resize_terminal($master, $size);
  my $name = '/dev/pts/' . unpack 'i', $number;
  sysopen my $other, $name, $WITHOUT_CONTROL or return;
  return ($master, $name, $other);
}

sub resize_terminal {
  my ($master, $size) = @_;
  my ($rows, $columns) = $size =~ /^(\d+) (\d+)$/ or return;
  my $packed = pack 'S4', $rows, $columns, 0, 0;
  ioctl $master, $SET_SIZE, $packed;
}

# In the process that becomes the program: leads a session of its own, with the terminal as its streams. False if it cannot.
sub enter_terminal {
  my ($name) = @_;
  syscall $SETSID;
  open STDIN, '+<', $name or return;
  ioctl STDIN, $MAKE_CONTROLLING, 0;
  return open(STDERR, '>&', \*STDIN) && open(STDOUT, '>&', \*STDIN);
}

1;
