# PID 1 of an outer cell: perl nest.pl IN OUT. It relays between the server and the runs, which others fork in their slots
# (forker.pl, or an interpreter that has booted). One connection carries the streams of all runs in frames, as with the
# agent: a type, the number of the run, a length, the bytes. README.md has the list.
use strict;
BEGIN { unshift @INC, $0 =~ m{^(.*/)} ? "$1lib" : 'lib' }
use Agent::Wire qw(leave open_wire send_frame);
use Kernel 'kernel_numbers';
use Nest::Job 'write_file';
use Nest::Relay qw(all_runs answered begin_run credit end_input forward kill_run push_input run_of);

my ($UMOUNT2) = kernel_numbers('umount2');
my ($EINTR, $EAGAIN, $MNT_DETACH) = (4, 11, 2);
my ($SETFL, $NONBLOCK, $DUPFD) = (4, 2048, 0);
my $CHUNK = 65536;

# SECURITY: at its end it kills all it can see, which must be a cell and never the host.
die "nest.pl: not PID 1 of a cell\n" if $$ != 1;
open STDIN, '<', $ARGV[0] or exit 71;
open STDOUT, '>', $ARGV[1] or exit 71;
# The way to the server is closed to all that comes after us.
my ($channel) = $ARGV[0] =~ m{^(.*)/};
exit 71 if syscall($UMOUNT2, $channel, $MNT_DETACH) == -1;
$^F = 2;
chdir '/';
$SIG{PIPE} = 'IGNORE';

my $input = '';
# What the slots have said and nobody has understood yet, by their answering ends.
my (@orders, @answers, @heard);

# The first frame: how many slots, a file that the command insists on, the command that makes them, its variables, and the plan, which is not for us.
sub open_slots {
  my ($payload) = @_;
  my @words = split /\0/, $payload, -1;
  my ($slots, $touch, $size) = splice @words, 0, 3;
  if (length $touch) { write_file($touch, "\n") }
  my @argv = splice @words, 0, $size;
  my $variables = shift @words;
  my @env = splice @words, 0, $variables;
  pipe my $plan_end, my $plan or die "pipe: $!\n";
  pipe my $said, my $words or die "pipe: $!\n";
  pipe my $nothing, my $silence or die "pipe: $!\n";
  my @ends = map { [two_pipes()] } 1 .. $slots;
  my $pid = fork;
  die "fork: $!\n" if !defined $pid;
  if (!$pid) {
    local %ENV = (%ENV, map { /^([^=]*)=(.*)$/s ? ($1, $2) : () } @env);
    $ENV{HOTCELL_NEST} = join ' ', far_up($plan_end), map { join ',', map { far_up($_) } @$_[0, 3] } @ends;
    open STDIN, '<&', $nothing or exit 71;
    open STDOUT, '>&', $words or exit 71;
    open STDERR, '>&', $words or exit 71;
    exec { $argv[0] } @argv or syswrite STDERR, "$argv[0]: $!\n";
    exit 127;
  }
  close $_ for $plan_end, $words, $nothing, map { @$_[0, 3] } @ends;
  syswrite $plan, join "\0", @words;
  close $plan;
  @orders = map { $_->[1] } @ends;
  @answers = map { $_->[2] } @ends;
  # In the order of the slots, each its number.
  my @numbers = map { scalar readline $_ } @answers;
  if (grep { !defined } @numbers) {
    sysread $said, my ($why), $CHUNK;
    send_frame('F', 0, $why // 'the slots ended');
    leave();
  }
  chomp @numbers;
  # Kept open: whoever writes there by mistake must not die of it. Nobody reads it.
  push @heard, $said, $silence;
  send_frame('R', 0, join ' ', @numbers);
}

# Open for what is executed, and out of the way of what that opens itself: its programs see which numbers are taken.
sub far_up { return fcntl($_[0], $DUPFD, 64) // die "dup: $!\n" }

# An end to order at and one to be told at, each with its other side.
sub two_pipes {
  pipe my $order_in, my $order_out or die "pipe: $!\n";
  pipe my $answer_in, my $answer_out or die "pipe: $!\n";
  return ($order_in, $order_out, $answer_in, $answer_out);
}

sub handle {
  my ($type, $id, $payload) = @_;
  return open_slots($payload) if $type eq 'N';
  return begin_run($id, $payload, \@orders) if $type eq 'S';
  my $run = run_of($id) or return;
  if ($type eq 'I') { push_input($run, $payload) }
  elsif ($type eq 'E') { end_input($run) }
  elsif ($type eq 'C') { credit($run, unpack 'N', $payload) }
  elsif ($type eq 'K') { kill_run($run) }
}

sub take_input {
  my $got = sysread STDIN, $input, $CHUNK, length $input;
  if (!defined $got) { return if $! == $EINTR || $! == $EAGAIN; leave() }
  leave() if $got == 0;
  while (length $input >= 9) {
    my ($type, $id, $size) = unpack 'a1NN', $input;
    last if length $input < 9 + $size;
    my $payload = substr $input, 9, $size;
    substr $input, 0, 9 + $size, '';
    handle($type, $id, $payload);
  }
}

open_wire(sub { undef });
for (;;) {
  my ($reads, $writes) = ('', '');
  vec($reads, fileno STDIN, 1) = 1;
  vec($reads, fileno $_, 1) = 1 for @answers;
  for my $run (all_runs()) {
    vec($reads, fileno $run->{status}, 1) = 1 if defined $run->{status};
    for my $name (qw(out err)) {
      vec($reads, fileno $run->{$name}, 1) = 1 if defined $run->{$name} && $run->{credit} > 0;
    }
    vec($writes, fileno $run->{in}, 1) = 1 if defined $run->{in} && length $run->{pending};
  }
  next if select($reads, $writes, undef, undef) <= 0;
  for my $slot (0 .. $#answers) { answered($slot, $answers[$slot]) if vec $reads, fileno $answers[$slot], 1 }
  for my $run (all_runs()) { forward($run, $reads, $writes) }
  take_input() if vec $reads, fileno STDIN, 1;
}
