# The way out of a cell: perl egress.pl [PORT]
# Listens on the cell's own loopback and carries every connection over its stdin and stdout in frames: a type, the number
# of the connection, a length, the bytes. README.md has the list. Checks nothing: all checks are on the server's side,
# because the programs of the cell could kill and replace this one. Ends with its input.
use strict;

my ($INET, $STREAM, $SOL_SOCKET, $REUSEADDR) = (2, 1, 1, 2);
my ($SETFL, $NONBLOCK) = (4, 2048);
my ($EINTR, $EAGAIN, $EADDRINUSE) = (4, 11, 98);
# Both sides know these numbers.
my ($WINDOW, $LEAST_COST, $MOST_CONNECTIONS) = (65536, 512, 256);
my $CHUNK = 16384;
# Credit is given back in portions, so that small pieces do not double the frames.
my $PORTION = $WINDOW / 4;

my $port = @ARGV ? $ARGV[0] : 3128;
my ($input, $last, %connections) = ('', 0);
$SIG{PIPE} = 'IGNORE';
$^F = 2;

sub send_frame {
  my ($type, $id, $payload) = @_;
  my $frame = pack('a1NN', $type, $id, length $payload) . $payload;
  while (length $frame) {
    my $put = syswrite STDOUT, $frame;
    if (!defined $put) { next if $! == $EINTR; exit 0 }
    substr $frame, 0, $put, '';
  }
}

# One that was killed may hold the port for a moment longer.
sub listen_on {
  my ($number) = @_;
  socket my $socket, $INET, $STREAM, 0 or die "egress.pl: socket: $!\n";
  setsockopt $socket, $SOL_SOCKET, $REUSEADDR, 1;
  for my $attempt (1 .. 200) {
    last if bind $socket, pack 'S n a4 x8', $INET, $number, "\x7f\0\0\1";
    die "egress.pl: port $number: $!\n" if $! != $EADDRINUSE || $attempt == 200;
    select undef, undef, undef, 0.05;
  }
  listen $socket, 128 or die "egress.pl: listen: $!\n";
  fcntl $socket, $SETFL, $NONBLOCK;
  return $socket;
}

# A frame costs something even when there is little in it, since keeping it does.
sub cost { return $_[0] < $LEAST_COST ? $LEAST_COST : $_[0] }

sub take_connection {
  my ($listener) = @_;
  accept my $socket, $listener or return;
  fcntl $socket, $SETFL, $NONBLOCK;
  my $id = ++$last;
  $connections{$id} = { id => $id, socket => $socket, credit => $WINDOW, owed => 0, pending => '' };
  send_frame('N', $id, '');
}

sub drop {
  my ($connection) = @_;
  close $connection->{socket};
  delete $connections{ $connection->{id} };
}

sub reset_both {
  my ($connection) = @_;
  send_frame('X', $connection->{id}, '');
  drop($connection);
}

# From the program to the server.
sub forward {
  my ($connection) = @_;
  my $most = $connection->{credit} < $CHUNK ? $connection->{credit} : $CHUNK;
  my $got = sysread $connection->{socket}, my ($bytes), $most;
  if (!defined $got) { return if $! == $EINTR || $! == $EAGAIN; return reset_both($connection) }
  if ($got > 0) {
    $connection->{credit} -= cost($got);
    return send_frame('D', $connection->{id}, $bytes);
  }
  $connection->{read_all} = 1;
  send_frame('E', $connection->{id}, '');
  drop($connection) if $connection->{wrote_all};
}

# From the server to the program.
sub feed {
  my ($connection) = @_;
  while (length $connection->{pending}) {
    my $put = syswrite $connection->{socket}, $connection->{pending};
    if (!defined $put) {
      next if $! == $EINTR;
      return if $! == $EAGAIN;
      return reset_both($connection);
    }
    substr $connection->{pending}, 0, $put, '';
  }
  if ($connection->{closing} && !$connection->{wrote_all}) {
    $connection->{wrote_all} = 1;
    shutdown $connection->{socket}, 1;
    return drop($connection) if $connection->{read_all};
  }
  return if $connection->{owed} < $PORTION || $connection->{closing};
  send_frame('C', $connection->{id}, pack 'N', $connection->{owed});
  $connection->{owed} = 0;
}

sub handle {
  my ($type, $id, $payload) = @_;
  # Frames for a connection that has just been closed are on their way.
  my $connection = $connections{$id} or return;
  if ($type eq 'D') {
    $connection->{pending} .= $payload;
    $connection->{owed} += cost(length $payload);
    feed($connection);
  }
  elsif ($type eq 'E') { $connection->{closing} = 1; feed($connection) }
  elsif ($type eq 'C') { $connection->{credit} += unpack 'N', $payload }
  elsif ($type eq 'X') { drop($connection) }
}

sub take_input {
  my $got = sysread STDIN, $input, 65536, length $input;
  if (!defined $got) { return if $! == $EINTR || $! == $EAGAIN; exit 0 }
  exit 0 if $got == 0;
  my $at = 0;
  while (length($input) - $at >= 9) {
    my ($type, $id, $size) = unpack 'a1NN', substr $input, $at, 9;
    last if length($input) - $at < 9 + $size;
    handle($type, $id, substr $input, $at + 9, $size);
    $at += 9 + $size;
  }
  substr $input, 0, $at, '';
}

my $listener = listen_on($port);
send_frame('R', 0, '');
for (;;) {
  my ($reads, $writes) = ('', '');
  vec($reads, fileno STDIN, 1) = 1;
  vec($reads, fileno $listener, 1) = 1 if keys %connections < $MOST_CONNECTIONS;
  for my $connection (values %connections) {
    my $number = fileno $connection->{socket};
    vec($reads, $number, 1) = 1 if !$connection->{read_all} && $connection->{credit} >= $LEAST_COST;
    vec($writes, $number, 1) = 1 if length $connection->{pending};
  }
  next if select($reads, $writes, undef, undef) <= 0;
  # A connection that ends below takes its number with it, and a new one only comes at the end.
  my @all = values %connections;
  for my $connection (@all) {
    my $number = fileno $connection->{socket};
    feed($connection) if vec $writes, $number, 1;
    forward($connection) if defined $connections{ $connection->{id} } && vec $reads, $number, 1;
  }
  take_input() if vec $reads, fileno STDIN, 1;
  take_connection($listener) if vec $reads, fileno $listener, 1;
}
