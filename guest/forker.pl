# Makes the slots for languages whose programs are executed: perl forker.pl. What it forks are the slots, which fork the
# runs; neither ever saw a job, an output or an end. HOTCELL_NEST has the descriptor of the plan, and for each slot the
# descriptors of its orders and answers.
use strict;
BEGIN { unshift @INC, $0 =~ m{^(.*/)} ? "$1lib" : 'lib' }
use Nest::Slot 'serve_slot';
use Nest::Walls 'read_walls';

my ($plan_end, @slots) = split / /, delete $ENV{HOTCELL_NEST};
# What the slots have open closes with the programs.
$^F = 2;
open my $text, '<&=', $plan_end or die "plan: $!\n";
my $plan = do { local $/; read_walls(<$text>) };
close $text;
my @ends = map {
  my ($orders, $answers) = split /,/;
  open my $in, '<&=', $orders or die "orders: $!\n";
  open my $out, '>&=', $answers or die "answers: $!\n";
  [$in, $out];
} @slots;
for my $slot (0 .. $#ends) {
  my $pid = fork;
  die "fork: $!\n" if !defined $pid;
  next if $pid;
  for my $other (grep { $_ != $slot } 0 .. $#ends) { close $_ for @{$ends[$other]} }
  serve_slot($plan, @{$ends[$slot]});
}
