# Requests, and the answers to them.
package Files::Frames;
use strict;
use Exporter 'import';
our @EXPORT_OK = qw(fail flush next_frame put refuse);

my ($EINTR, $ENOSPC, $EDQUOT) = (4, 28, 122);
my ($CHUNK, $LONGEST_REQUEST, $IDLE_SECONDS) = (65536, 1048576, 600);

# The number of the request that is being answered is put before every answer.
my ($input, $output, $id) = ('', '', 0);

sub flush {
  while (length $output) {
    my $put = syswrite STDOUT, $output;
    if (!defined $put) { next if $! == $EINTR; exit 0 }
    substr $output, 0, $put, '';
  }
}

sub put {
  my ($type, $payload) = @_;
  $output .= pack('a1NN', $type, $id, length $payload) . $payload;
  flush() if length $output >= $CHUNK;
}

# Ends a request: m missing, r refused, f disk full, c changed meanwhile, l too much; with what it is about, as a number.
sub fail {
  my ($why, $index) = @_;
  my $errno = $! + 0;
  $why = 'f' if $errno == $ENOSPC || $errno == $EDQUOT;
  die { why => $why, index => $index || 0, errno => $errno };
}

sub refuse { $! = 0; fail('r', @_) }

sub next_frame {
  for (;;) {
    if (length $input >= 9) {
      (my $type, $id, my $size) = unpack 'a1NN', $input;
      exit 70 if $size > $LONGEST_REQUEST;
      if (length $input >= 9 + $size) {
        my $payload = substr $input, 9, $size;
        substr $input, 0, 9 + $size, '';
        return ($type, $id, $payload);
      }
    }
    my $ready = '';
    vec($ready, fileno STDIN, 1) = 1;
    my $count = select $ready, undef, undef, $IDLE_SECONDS;
    next if $count < 0;
    return if $count == 0;
    my $got = sysread STDIN, $input, $CHUNK, length $input;
    next if !defined $got && $! == $EINTR;
    return if !$got;
  }
}

1;
