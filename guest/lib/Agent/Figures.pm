# What the kernel tells from inside about a cell and its processes.
package Agent::Figures;
use strict;
use Exporter 'import';
use Kernel 'kernel_numbers';
our @EXPORT_OK = qw(children_usage clock counters cpu_us descendants fullness resident slurp);

my ($GETRUSAGE, $STATFS) = kernel_numbers(qw(getrusage statfs));

sub slurp {
  open my $file, '<', $_[0] or return '';
  local $/;
  my $text = <$file>;
  return defined $text ? $text : '';
}

# Seconds that only go forward.
sub clock { return (split ' ', slurp('/proc/uptime'))[0] || 0 }

# What the kernel has counted for the whole cell. Where cgroups cannot be seen from inside, nothing.
sub counters {
  my $two = -e '/sys/fs/cgroup/cgroup.controllers';
  my ($memory, $cpu, $pids) = $two ? ('') x 3 : ('memory/', 'cpuacct/', 'pids/');
  my $at = '/sys/fs/cgroup/';
  my %found;
  my $peak = slurp($at . $memory . ($two ? 'memory.peak' : 'memory.max_usage_in_bytes'));
  $found{peak} = $1 if $peak =~ /(\d+)/;
  my $used = slurp($at . $cpu . ($two ? 'cpu.stat' : 'cpuacct.usage'));
  $found{cell_cpu_us} = $two ? $1 : int($1 / 1000) if $used =~ ($two ? qr/usage_usec (\d+)/ : qr/(\d+)/);
  $found{oom} = $1 if slurp($at . $memory . ($two ? 'memory.events' : 'memory.oom_control')) =~ /oom_kill (\d+)/;
  $found{pids} = $1 if slurp($at . $pids . 'pids.events') =~ /max (\d+)/;
  return %found;
}

# The share of the fullest place to write to, in per cent: of its bytes or of its inodes, whichever is more.
sub fullness {
  my $most = 0;
  for my $place (qw(/tmp /workspace)) {
    my ($path, $info) = ("$place\0", "\0" x 256);
    next if syscall($STATFS, $path, $info) != 0;
    my ($blocks, $free, $available, $files, $free_files) = (unpack 'q7', $info)[2 .. 6];
    # The file system keeps a part of what is free for itself.
    my @taken = ([$blocks - $free, $available], [$files - $free_files, $free_files]);
    for my $share (map { $_->[0] > 0 ? 100 * $_->[0] / ($_->[0] + $_->[1]) : 0 } @taken) {
      $most = $share if $share > $most;
    }
  }
  return int $most;
}

sub children_usage {
  my $usage = "\0" x 256;
  syscall $GETRUSAGE, -1, $usage;
  my ($user, $user_us, $system, $system_us, $largest) = unpack 'q5', $usage;
  return (($user + $system) * 1_000_000 + $user_us + $system_us, $largest * 1024);
}

# All processes below one, by the kernel's own list of parents.
sub descendants {
  my ($root) = @_;
  my %below;
  opendir my $proc, '/proc' or return ();
  for my $pid (grep { /^\d+$/ } readdir $proc) {
    push @{ $below{$1} }, $pid if slurp("/proc/$pid/stat") =~ /.*\) \S (\d+)/s;
  }
  my @found;
  my @next = ($root);
  while (defined(my $parent = shift @next)) {
    push @found, @{ $below{$parent} || [] };
    push @next, @{ $below{$parent} || [] };
  }
  return @found;
}

# Memory of processes: their own pages, and once the largest share of what they have in common.
sub resident {
  my ($own, $common) = (0, 0);
  for my $pid (@_) {
    my (undef, $resident, $shared) = split ' ', slurp("/proc/$pid/statm");
    next if !defined $shared;
    $own += $resident - $shared;
    $common = $shared if $shared > $common;
  }
  return ($own + $common) * 4096;
}

# CPU time so far, of those that are still there.
sub cpu_us {
  my $ns = 0;
  for my $pid (@_) {
    opendir my $tasks, "/proc/$pid/task" or next;
    $ns += (split ' ', slurp("/proc/$pid/task/$_/schedstat"))[0] || 0 for grep { /^\d/ } readdir $tasks;
  }
  return int($ns / 1000);
}

1;
