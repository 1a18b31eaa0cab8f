# What the agent of a cell keeps that outlives the server: output that nobody has noted yet, and ends. A command here is
# anything with `retained`, pieces of output in order, and `noted`, the bytes of output that somebody on the other side has
# written down. One string holds all pieces, because a program may print byte by byte. Other agents keep nothing.
package Agent::Lasting;
use strict;
use Exporter 'import';
our @EXPORT_OK = qw(ended_command ended_ids forget_end is_lasting keep_end last_on note retain retell);

# Before each piece: its type and its length.
my ($HEAD, $HEAD_BYTES) = ('a1N', 5);
my ($is_lasting, %ended) = (0);

sub last_on { $is_lasting = 1 }

sub is_lasting { return $is_lasting }

# Until somebody has noted it.
sub keep_end {
  my ($command, @words) = @_;
  return if !$is_lasting;
  $ended{ $command->{id} } = { words => \@words, map { $_ => $command->{$_} } qw(id retained noted) };
}

sub forget_end { delete $ended{ $_[0] } }

sub ended_command { return $ended{ $_[0] } }

sub ended_ids { return keys %ended }

sub retain {
  my ($command, $type, $bytes) = @_;
  $command->{retained} .= pack($HEAD, $type, length $bytes) . $bytes if $is_lasting;
}

# So much more of the output is in safe hands.
sub note {
  my ($command, $bytes) = @_;
  return if !$is_lasting;
  $command->{noted} += $bytes;
  while ($bytes > 0 && length($command->{retained} || '')) {
    my ($type, $length) = unpack $HEAD, $command->{retained};
    my $left = $length > $bytes ? pack($HEAD, $type, $length - $bytes) : '';
    my $taken = $length > $bytes ? $bytes : $length;
    substr $command->{retained}, 0, $HEAD_BYTES + $taken, $left;
    $bytes -= $taken;
  }
}

# Everything that is not in safe hands, once more, from that byte of the output on. Returns how much it was.
sub retell {
  my ($command, $from, $send) = @_;
  note($command, $from - $command->{noted}) if $from > $command->{noted};
  my $retained = $command->{retained} || '';
  my ($bytes, $at) = (0, 0);
  while ($at < length $retained) {
    my ($type, $length) = unpack $HEAD, substr $retained, $at, $HEAD_BYTES;
    $send->($type, substr $retained, $at + $HEAD_BYTES, $length);
    $bytes += $length;
    $at += $HEAD_BYTES + $length;
  }
  return $bytes;
}

1;
