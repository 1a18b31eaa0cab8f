# The streams of a command, between its program and the server.
package Agent::Streams;
use strict;
use Exporter 'import';
use Agent::Lasting 'retain';
use Agent::Terminal 'open_terminal';
use Agent::Wire 'send_frame';
our @EXPORT_OK = qw(close_streams feed forward forward_rest open_streams);

my ($SETFL, $NONBLOCK) = (4, 2048);
my ($EINTR, $EAGAIN) = (4, 11);
my $CHUNK = 65536;

# The ends of the streams of a command: ours, and those of the program.
sub open_streams {
  my ($size, $tells_where) = @_;
  my %ours;
  my %theirs;
  if ($size ne '') {
    ($ours{out}, $theirs{terminal}, $ours{held}) = open_terminal($size) or return;
    open $ours{in}, '>&', $ours{out} or return;
  } else {
    pipe $theirs{in}, $ours{in} or return;
    for my $name (qw(out err)) { pipe $ours{$name}, $theirs{$name} or return }
  }
  for my $name ('status', $tells_where ? 'where' : ()) { pipe $ours{$name}, $theirs{$name} or return }
  # Nobody reads before the end where a command says that it is: whoever says too much must not wait.
  fcntl $_, $SETFL, $NONBLOCK for grep { defined } @ours{qw(in out err where)}, $theirs{where};
  return (\%ours, \%theirs);
}

sub close_streams {
  my ($command) = @_;
  close $_ for grep { defined } @$command{qw(in out err status where held)};
}

sub feed {
  my ($command) = @_;
  return if !defined $command->{in};
  while (length $command->{pending}) {
    my $put = syswrite $command->{in}, $command->{pending};
    if (!defined $put) {
      return if $! == $EAGAIN || $! == $EINTR;
      $command->{pending} = '';
      $command->{closing} = 1;
      last;
    }
    substr $command->{pending}, 0, $put, '';
  }
  return if !$command->{closing};
  # What ends the input of a terminal is a key.
  if ($command->{terminal}) { $command->{closing} = 0; syswrite $command->{in}, "\x04" }
  else { close delete $command->{in} }
}

# Passes on what there is, within the credit of the command; false when the stream has ended.
sub forward {
  my ($command, $name, $type) = @_;
  return 1 if $command->{credit} <= 0;
  my ($room, $bytes) = ($command->{credit} < $CHUNK ? $command->{credit} : $CHUNK);
  my $got = sysread $command->{$name}, $bytes, $room;
  return 1 if !defined $got && ($! == $EAGAIN || $! == $EINTR);
  # A terminal that nobody has open any more gives an error.
  if (!$got) { close delete $command->{$name}; return 0 }
  $command->{credit} -= $got;
  retain($command, $type, $bytes);
  send_frame($type, $command->{id}, $bytes);
  return 1;
}

# Passes on what is left of a command whose processes are dead; false when it has to wait for credit.
sub forward_rest {
  my ($command) = @_;
  for my $stream ([out => 'O'], [err => 'e']) {
    my ($name, $type) = @$stream;
    while (defined $command->{$name}) {
      if ($command->{credit} <= 0) {
        return 0 if !$command->{killed} || $command->{silent};
        # Whoever kills does not wait for output that nobody takes.
        close delete $command->{$name};
        last;
      }
      # Somebody outside of this command may hold the other end: what is not there now will not come.
      my $before = $command->{credit};
      forward($command, $name, $type) or last;
      close delete $command->{$name} if defined $command->{$name} && $command->{credit} == $before;
    }
  }
  return 1;
}

1;
