# One slot: makes a run whenever it is told to, inside walls of its own. It never sees a job, an output or an end.
package Nest::Slot;
use strict;
use Exporter 'import';
use Kernel 'kernel_numbers';
use Nest::Program 'become_program';
use Nest::Walls 'lay_walls';
our @EXPORT_OK = qw(serve_slot);

my ($EXIT_GROUP) = kernel_numbers('exit_group');
my $SIGCHLD = 17;
# As ever when a run could not be begun.
my $FAILED = 71;

# Answers with its number, then with the number of PID 1 of every run that was ordered, or with 0 and the reason.
sub serve_slot {
  my ($plan, $orders, $answers) = @_;
  # Nobody waits for PID 1 of a run: the end of its streams tells everything.
  $SIG{CHLD} = 'IGNORE';
  answer($answers, $$);
  for (;;) {
    my $order = read_order($orders);
    leave(0) if !defined $order;
    my $ends = eval { open_ends($order) };
    if (!$ends) { answer($answers, "0 $@"); next }
    # Not fork(): that knows of no namespaces.
    my $pid = syscall $plan->{clone}, $plan->{flags} | $SIGCHLD, 0, 0, 0, 0;
    if ($pid == 0) {
      close $orders;
      close $answers;
      keep_run($plan, $order, $ends);
    }
    answer($answers, $pid > 0 ? $pid : "0 $!");
  }
}

sub answer {
  my ($answers, $words) = @_;
  chomp $words;
  defined syswrite $answers, "$words\n" or leave($FAILED);
}

# Perl's own exit would run what others have registered, and a child of clone must not.
sub leave { syscall $EXIT_GROUP, 0 + $_[0] }

# A length in decimal, a line feed, and so many bytes; undefined when nobody orders any more.
sub read_order {
  my ($orders) = @_;
  my $length = '';
  while ($length !~ /\n\z/) { sysread $orders, $length, 1, length $length or return undef }
  my $text = '';
  while (length $text < $length) { sysread $orders, $text, $length - length $text, length $text or return undef }
  my @words = split /\0/, $text, -1;
  my %order;
  @order{qw(relay in out err status id host mode file)} = splice @words, 0, 9;
  $order{argv} = [splice @words, 0, shift @words];
  $order{env} = {map { /^([^=]*)=(.*)$/s ? ($1, $2) : () } @words};
  return \%order;
}

# The far ends of the streams, which the relay has open.
sub open_ends {
  my ($order) = @_;
  my %ends;
  for my $name (qw(in out err status)) {
    sysopen $ends{$name}, "/proc/$order->{relay}/fd/$order->{$name}", $name eq 'in' ? 0 : 1 or die "$name: $!\n";
  }
  return \%ends;
}

# PID 1 of a run: makes its walls, starts the program, and tells how that ended. Whatever is left dies with it.
sub keep_run {
  my ($plan, $order, $ends) = @_;
  my %facts = (id => $order->{id}, host => $order->{host}, hostlen => length $order->{host});
  my $ended = eval {
    lay_walls($plan->{first}, \%facts);
    my $program = fork;
    die "fork: $!\n" if !defined $program;
    become_program($plan, $order, $ends, \%facts) if !$program;
    close $ends->{$_} for qw(in out err);
    lay_walls($plan->{keeper}, \%facts);
    $SIG{CHLD} = 'DEFAULT';
    my $pid;
    do { $pid = wait } until $pid == $program || $pid == -1;
    "E$?";
  };
  syswrite $ends->{status}, $ended // "F$@";
  leave(defined $ended ? 0 : $FAILED);
}

1;
