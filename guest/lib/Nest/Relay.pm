# The runs of an outer cell as the relay knows them: their streams, their ends, and who is to be killed.
package Nest::Relay;
use strict;
use Exporter 'import';
use Agent::Wire qw(leave send_frame);
use Kernel 'kernel_numbers';
our @EXPORT_OK = qw(all_runs answered begin_run credit end_input forward kill_run push_input run_of);

my ($FCHMOD) = kernel_numbers('fchmod');
my ($SETFL, $NONBLOCK) = (4, 2048);
my ($EINTR, $EAGAIN, $SIGKILL) = (4, 11, 9);
my $CHUNK = 65536;
# How much output the server takes before it has said so.
my $FIRST_CREDIT = 262144;
my %runs;
# The run that each slot was told to make and has not answered for.
my @ordered;

sub all_runs { return values %runs }
sub run_of { return $runs{$_[0]} }

# The payload: the slot, and what it is to be told but for the descriptors.
sub begin_run {
  my ($id, $payload, $orders) = @_;
  my ($slot, $rest) = split /\0/, $payload, 2;
  my %run = (id => $id, pending => '', credit => $FIRST_CREDIT, said => '');
  my %far;
  my $made = pipe $far{in}, $run{in};
  for my $name (qw(out err status)) { $made &&= pipe $run{$name}, $far{$name} }
  return send_frame('F', $id, "pipe: $!") if !$made;
  # The program is another user, and may open /dev/stdin and its like again.
  for my $name (qw(in out err)) { syscall $FCHMOD, fileno $far{$name}, 0666 }
  fcntl $_, $SETFL, $NONBLOCK for @run{qw(in out err status)};
  $run{far} = \%far;
  $runs{$id} = $ordered[$slot] = \%run;
  my $order = join "\0", $$, (map { fileno $far{$_} } qw(in out err status)), $rest;
  $order = length($order) . "\n$order";
  # Short enough for a pipe that is empty: the slot waits for it.
  leave() if length $order != (syswrite($orders->[$slot], $order) // 0);
}

# A slot says which process it made, or why it made none.
sub answered {
  my ($slot, $answers) = @_;
  my $line = readline $answers;
  # Without one of its slots a cell is of no use.
  leave() if !defined $line;
  my ($pid, $why) = $line =~ /^(\d+) ?(.*)$/ or leave();
  my $run = delete $ordered[$slot] or leave();
  close $_ for values %{delete $run->{far}};
  $run->{pid} = $pid;
  $run->{said} = "F$why" if !$pid;
  kill_run($run) if $run->{killed};
}

sub push_input {
  my ($run, $bytes) = @_;
  $run->{pending} .= $bytes;
  feed($run);
}

sub end_input {
  my ($run) = @_;
  $run->{closing} = 1;
  feed($run);
}

sub credit {
  my ($run, $bytes) = @_;
  $run->{credit} += $bytes;
}

# PID 1 of the run, and with it the kernel kills all the others.
sub kill_run {
  my ($run) = @_;
  $run->{killed} = 1;
  kill $SIGKILL, $run->{pid} if $run->{pid} && defined $run->{status};
}

sub feed {
  my ($run) = @_;
  return if !defined $run->{in};
  while (length $run->{pending}) {
    my $put = syswrite $run->{in}, $run->{pending};
    if (!defined $put) {
      return if $! == $EAGAIN || $! == $EINTR;
      $run->{pending} = '';
      $run->{closing} = 1;
      last;
    }
    substr $run->{pending}, 0, $put, '';
  }
  close delete $run->{in} if $run->{closing};
}

sub forward {
  my ($run, $reads, $writes) = @_;
  feed($run) if defined $run->{in} && vec $writes, fileno $run->{in}, 1;
  for my $stream ([out => 'O'], [err => 'e']) {
    my ($name, $type) = @$stream;
    next if !defined $run->{$name} || !vec $reads, fileno $run->{$name}, 1;
    my $room = $run->{credit} < $CHUNK ? $run->{credit} : $CHUNK;
    next if $room <= 0;
    my $got = sysread $run->{$name}, my ($bytes), $room;
    next if !defined $got && ($! == $EAGAIN || $! == $EINTR);
    if (!$got) { close delete $run->{$name}; next }
    $run->{credit} -= $got;
    send_frame($type, $run->{id}, $bytes);
  }
  if (defined $run->{status} && vec $reads, fileno $run->{status}, 1) {
    my $got = sysread $run->{status}, my ($bytes), $CHUNK;
    return if !defined $got && ($! == $EAGAIN || $! == $EINTR);
    # What PID 1 has to say is short.
    if ($got && length $run->{said} < 1024) { $run->{said} .= $bytes }
    elsif (!$got) { close delete $run->{status} }
  }
  # Whoever kills does not wait for output that nobody takes.
  if ($run->{killed} && !defined $run->{status}) {
    for my $name (qw(out err)) { close delete $run->{$name} if defined $run->{$name} && $run->{credit} <= 0 }
  }
  end_run($run) if !grep { defined $run->{$_} } qw(out err status);
}

sub end_run {
  my ($run) = @_;
  delete $runs{$run->{id}};
  close $run->{in} if defined $run->{in};
  my $said = $run->{said};
  return send_frame('F', $run->{id}, $1) if $said =~ /F(.*)/s;
  return send_frame('X', $run->{id}, "wait=$1") if $said =~ /^E(\d+)$/;
  return send_frame('X', $run->{id}, "wait=$SIGKILL") if $run->{killed};
  send_frame('L', $run->{id}, '');
}

1;
