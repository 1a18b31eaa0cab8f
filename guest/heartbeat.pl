# A sign of life of a cell: perl heartbeat.pl SECONDS
# Prints a line every so often, the first one at once, until its stdin ends or nobody reads what it prints.
# No modules at all, and nothing that grows.
use strict;

my $EINTR = 4;
my $interval = @ARGV ? $ARGV[0] : '';
if ($interval !~ /^[0-9]{1,6}(?:\.[0-9]{1,6})?\z/ || $interval <= 0) {
  print STDERR "heartbeat.pl: the number of seconds is missing\n";
  exit 64;
}
$SIG{PIPE} = 'IGNORE';
for (;;) {
  while (!defined syswrite STDOUT, "beat\n") { exit 0 if $! != $EINTR }
  my $left = $interval;
  for (;;) {
    my $reads = '';
    vec($reads, fileno STDIN, 1) = 1;
    (my $found, $left) = select $reads, undef, undef, $left;
    last if $found == 0;
    next if $found < 0;
    # What is said to it does not matter, only that it ends.
    my $got = sysread STDIN, my $ignored, 4096;
    exit 0 if defined $got ? $got == 0 : $! != $EINTR;
  }
}
