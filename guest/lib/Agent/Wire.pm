# What the agent says to the server, and its end.
package Agent::Wire;
use strict;
use Exporter 'import';
our @EXPORT_OK = qw(close_log leave open_log open_wire put put_log send_frame);

my ($SETFL, $NONBLOCK) = (4, 2048);
my ($EINTR, $EAGAIN) = (4, 11);
my $meanwhile;
# Where the engine reads what it keeps as the log of this cell; undefined if it keeps none.
my $log;

# What is called whenever nobody takes what we say; it tells for how many seconds to wait before it is called again.
sub open_wire {
  ($meanwhile) = @_;
  fcntl STDOUT, $SETFL, $NONBLOCK;
}

# Whoever is left dies with us: this is the end of the namespace.
sub leave { kill 9, -1; exit 0 }

sub put {
  my ($bytes) = @_;
  while (length $bytes) {
    my $put = syswrite STDOUT, $bytes;
    if (!defined $put) {
      next if $! == $EINTR;
      leave() if $! != $EAGAIN;
      my $writes = '';
      vec($writes, fileno STDOUT, 1) = 1;
      select undef, $writes, undef, $meanwhile->();
      next;
    }
    substr $bytes, 0, $put, '';
  }
}

sub send_frame {
  my ($type, $id, $payload) = @_;
  put(pack('a1NN', $type, $id, length $payload) . $payload);
}

sub open_log {
  ($log) = @_;
  fcntl $log, $SETFL, $NONBLOCK;
}

sub close_log { undef $log }

# Nobody waits for the engine: a line that it does not take at once is lost.
sub put_log {
  my ($line) = @_;
  syswrite $log, $line if defined $log;
}

1;
