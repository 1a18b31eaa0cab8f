# For tests: perl -w -Mloud PROGRAM. What perl warns of reaches the stderr that the program was started with, also from its
# children, and whatever they have made of their own stderr.
package loud;
use strict;

open my $stderr, '>&', \*STDERR or die "stderr: $!\n";
$SIG{__WARN__} = sub { syswrite $stderr, "a warning: $_[0]" };

1;
