# Ends that need no server: that of a command, and that of the cell. Whoever is late is asked to end and, after a grace,
# killed.
package Agent::Deadlines;
use strict;
use Exporter 'import';
use Agent::Commands qw(all_commands command kill_tree terminate);
use Agent::Figures 'clock';
use Agent::Wire 'leave';
our @EXPORT_OK = qw(keep_deadlines set_deadline);

# What has an end here is anything with `deadline`: when something is to be done, and the grace that is left after that.
my %cell = (is_cell => 1);

# In so many milliseconds, with so many of grace; nothing takes it back. The number 0 is the cell.
sub set_deadline {
  my ($id, $payload) = @_;
  my $holder = $id == 0 ? \%cell : command($id) or return;
  delete $holder->{deadline};
  my ($after, $grace) = $payload =~ /^(\d+) (\d+)$/ or return;
  $holder->{deadline} = { at => clock() + $after / 1000, grace => $grace / 1000 };
}

# Does what is due, and says how long the next one has.
sub keep_deadlines {
  my ($now, $next) = (undef, undef);
  for my $holder (\%cell, grep { !$_->{end} } all_commands()) {
    my $deadline = $holder->{deadline} or next;
    $now = clock() if !defined $now;
    if ($now >= $deadline->{at}) {
      my $grace = delete $deadline->{grace};
      if (!defined $grace) {
        delete $holder->{deadline};
        leave() if $holder->{is_cell};
        kill_tree($holder);
        next;
      }
      $deadline->{at} = $now + $grace;
      $holder->{expired} = 1;
      terminate($_) for $holder->{is_cell} ? all_commands() : $holder;
    }
    my $left = $deadline->{at} - $now;
    $next = $left if !defined $next || $left < $next;
  }
  return $next;
}

1;
