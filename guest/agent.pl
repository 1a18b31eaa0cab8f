# PID 1 of a cell that takes commands: perl agent.pl [--lasting] [--log OUT | IN OUT]
# One connection (the FIFOs, else stdin and stdout) carries the streams of all commands in frames: a type, the number
# of the command, a length, the bytes. README.md has the list. No modules but ours and what perl-base has, because this
# starts with every cell. Ends with its input, and so with the server; unless it is to last: then it waits for the next one.
use strict;
BEGIN { unshift @INC, $0 =~ m{^(.*/)} ? "$1lib" : 'lib' }
use Agent::Commands
  qw(all_commands command complete hear_children kill_command look look_soon reap resume start terminate usage_of wake);
use Agent::Deadlines qw(keep_deadlines set_deadline);
use Agent::Lasting qw(ended_command ended_ids forget_end is_lasting last_on note);
use Agent::Streams qw(feed forward);
use Agent::Supervisor 'forbid_looks';
use Agent::Terminal 'resize_terminal';
use Agent::Wire qw(leave open_log open_wire put put_log send_frame);

my ($EINTR, $EAGAIN) = (4, 11);
my $CHUNK = 65536;
# What follows the marker in a greeting: bytes that tell one greeting from another.
my $GREETING = 8;

# SECURITY: at its end it kills all it can see, which must be a cell and never the host.
die "agent.pl: not PID 1 of a cell\n" if $$ != 1;
if (@ARGV && $ARGV[0] eq '--lasting') { shift @ARGV; last_on() }
if (@ARGV && $ARGV[0] eq '--log') {
  # The engine keeps what comes from the stdout that it gave us, for people: so what we say goes elsewhere.
  open my $log, '>&', \*STDOUT or exit 71;
  open STDOUT, '>', $ARGV[1] or exit 71;
  open_log($log);
}
elsif (@ARGV) {
  # With both ends open here a FIFO neither ends nor breaks when the server does.
  my ($in, $out) = is_lasting() ? ('+<', '+<') : ('<', '>');
  open STDIN, $in, $ARGV[0] or exit 71;
  open STDOUT, $out, $ARGV[1] or exit 71;
}
forbid_looks();
# The commands get their own pipes; this one stays here.
$^F = 2;
chdir '/tmp';
umask 022;

my $input = '';
# In a cell that lasts: bytes by which the next server makes itself known.
my $marker;
my $greeted = '';
my $bell = hear_children() or exit 71;
$SIG{PIPE} = 'IGNORE';

sub handle {
  my ($type, $id, $payload) = @_;
  return start($id, $payload) if $type eq 'S';
  return set_deadline($id, $payload) if $type eq 'A';
  return put_log($payload) if $type eq 'G';
  if (is_lasting()) {
    if ($type eq 'M') { $marker = $payload; return }
    return resume($id, $payload) if $type eq 'Z';
    forget_end($id) if $type eq 'D';
    note(ended_command($id), unpack 'N', $payload) if $type eq 'C' && ended_command($id);
  }
  my $command = command($id) or return;
  if ($type eq 'I') {
    wake($command);
    $command->{awake} = 1;
    $command->{pending} .= $payload;
    feed($command);
    look_soon($command);
  }
  elsif ($type eq 'E') { $command->{closing} = 1; feed($command) }
  elsif ($type eq 'C') {
    $command->{credit} += unpack 'N', $payload;
    note($command, unpack 'N', $payload);
    complete($command) if $command->{end};
  }
  elsif ($type eq 'T') { terminate($command) }
  elsif ($type eq 'W') { resize_terminal($command->{out}, $payload) if $command->{terminal} && defined $command->{out} }
  elsif ($type eq 'K') { kill_command($command) }
  elsif ($type eq 'U') {
    my %words = usage_of($command);
    send_frame('U', $id, join ' ', map {"$_=$words{$_}"} sort keys %words);
  }
}

# The next server is there. Until it has asked for a command, it hears nothing of that one. It may say the same greeting
# several times, because the first ones may get lost in what the last server had begun to say.
sub greet {
  my ($greeting) = @_;
  return if $greeting eq $greeted;
  $greeted = $greeting;
  my @known = ended_ids();
  for my $command (all_commands()) {
    @$command{qw(silent credit)} = (1, 0);
    push @known, $command->{id};
  }
  put($greeting);
  send_frame('H', 0, join ' ', sort { $a <=> $b } @known);
}

# Does what the frames say that are whole within so many bytes of the input; returns how many bytes they were.
sub take_frames {
  my ($bound) = @_;
  my $taken = 0;
  while ($bound - $taken >= 9) {
    my ($type, $id, $size) = unpack 'a1NN', $input;
    last if $bound - $taken < 9 + $size;
    my $payload = substr $input, 9, $size;
    substr $input, 0, 9 + $size, '';
    $taken += 9 + $size;
    handle($type, $id, $payload);
  }
  return $taken;
}

sub take_input {
  my $seen = length $input;
  my $got = sysread STDIN, $input, $CHUNK, $seen;
  if (!defined $got) { return if $! == $EINTR || $! == $EAGAIN; leave() }
  leave() if $got == 0;
  if (defined $marker) {
    my $length = $GREETING + length $marker;
    my $from = $seen < $length ? 0 : $seen - $length;
    while ((my $at = index $input, $marker, $from) >= 0) {
      # What the last server had begun to say will never be finished.
      substr $input, 0, $at - take_frames($at), '';
      return if length $input < $length;
      greet(substr $input, 0, $length, '');
      $from = 0;
    }
  }
  take_frames(length $input);
}

open_wire(\&keep_deadlines);
send_frame('R', 0, '');
for (;;) {
  my ($reads, $writes) = ('', '');
  vec($reads, fileno STDIN, 1) = 1;
  vec($reads, fileno $bell, 1) = 1;
  for my $command (all_commands()) {
    next if $command->{end};
    for my $name (qw(out err)) {
      vec($reads, fileno $command->{$name}, 1) = 1 if defined $command->{$name} && $command->{credit} > 0;
    }
    vec($writes, fileno $command->{in}, 1) = 1 if defined $command->{in} && length $command->{pending};
  }
  my ($wait) = sort { $a <=> $b } grep { defined } look(), keep_deadlines();
  next if select($reads, $writes, undef, $wait) <= 0;
  # Output before ends, so that nothing of it is overtaken.
  for my $command (all_commands()) {
    next if $command->{end};
    feed($command) if defined $command->{in} && vec $writes, fileno $command->{in}, 1;
    for my $stream ([out => 'O'], [err => 'e']) {
      my ($name, $type) = @$stream;
      forward($command, $name, $type) if defined $command->{$name} && vec $reads, fileno $command->{$name}, 1;
    }
  }
  reap() if vec $reads, fileno $bell, 1;
  take_input() if vec $reads, fileno STDIN, 1;
}
