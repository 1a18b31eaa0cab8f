# What the agent says to the server, and its end.
package Agent::Wire;
use strict;
use Exporter 'import';
our @EXPORT_OK = qw(leave put send_frame);

my $EINTR = 4;

# Whoever is left dies with us: this is the end of the namespace.
sub leave { kill 9, -1; exit 0 }

sub put {
  my ($bytes) = @_;
  while (length $bytes) {
    my $put = syswrite STDOUT, $bytes;
    if (!defined $put) { next if $! == $EINTR; leave() }
    substr $bytes, 0, $put, '';
  }
}

sub send_frame {
  my ($type, $id, $payload) = @_;
  put(pack('a1NN', $type, $id, length $payload) . $payload);
}

1;
