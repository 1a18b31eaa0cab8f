# The commands of a cell, from their start to their last words.
package Agent::Commands;
use strict;
use Exporter 'import';
use Agent::Figures qw(children_usage clock counters cpu_us descendants fullness resident slurp);
use Agent::Lasting qw(ended_command keep_end retell);
use Agent::Signals qw(hear hold_signals open_bell);
use Agent::Streams qw(close_streams forward_rest open_streams);
use Agent::Supervisor qw(become end_all supervise);
use Agent::Wire qw(close_log leave send_frame);
our @EXPORT_OK = qw(
  all_commands command complete hear_children kill_command kill_tree look look_soon reap resume start terminate usage_of wake
);

my ($NOHANG, $UNTRACED, $STOPPED) = (1, 2, 127);
my $CREDIT = 262144;
# A look at the memory of a command costs a look at every process, so looks become rare when nothing happens.
my ($FIRST_LOOK, $LONGEST_LOOK) = (0.1, 5);

my (%commands, $bell);

sub command { return $commands{ $_[0] } }

sub all_commands { return values %commands }

# What is to be read when a process has ended; nothing if that cannot be known.
sub hear_children {
  hold_signals();
  return $bell = open_bell();
}

# ---- the beginning

sub fail_start {
  my ($id, $why, $touch) = @_;
  unlink $touch if defined $touch && $touch ne '';
  send_end({ id => $id, noted => 0 }, ['F', $why]);
}

sub start {
  my ($id, $payload) = @_;
  my ($alone, $cwd, $touch, $size, $fallback, $count, @words) = split /\0/, $payload, -1;
  my @argv = splice @words, 0, $count;
  my %env = map { split /=/, $_, 2 } @words;
  my $moved = $fallback ne '' && !(-d $cwd && -x _);
  my $start = { cwd => $moved ? $fallback : $cwd, fallback => $fallback, argv => \@argv, env => \%env };
  my %counted = counters();
  if ($touch ne '') {
    # Not empty: ruby looks at the first byte before its bootstrap can run.
    open my $file, '>', $touch or return fail_start($id, "$touch: $!");
    print $file "\n";
    close $file or return fail_start($id, "$touch: $!");
  }
  my ($ours, $theirs) = open_streams($size, $fallback ne '');
  return fail_start($id, "streams: $!", $touch) if !defined $ours;
  @$start{qw(terminal where)} = @$theirs{qw(terminal where)};
  my $child = fork;
  return fail_start($id, "fork: $!", $touch) if !defined $child;
  if ($child == 0) {
    # Copies of the others' streams would keep them from ending.
    close_streams($_) for values %commands;
    close $_ for grep { defined } values %$ours, $bell;
    open STDIN, '<', '/dev/null';
    open STDOUT, '>', '/dev/null';
    close_log();
    my @streams = @$theirs{qw(in out err)};
    become($start, @streams) if $alone;
    supervise($start, @streams, $theirs->{status});
    kill 9, $$;
  }
  $commands{$id} = {
    id => $id, pid => $child, alone => $alone, touch => $touch, counted => \%counted, moved => $moved ? 1 : 0,
    terminal => $size ne '', %$ours, pending => '', closing => 0, credit => $CREDIT, peak => 0, noted => 0,
  };
  look_soon($commands{$id});
  if ($alone) { close delete $commands{$id}{status} }
}

# ---- figures

sub members {
  my ($command) = @_;
  return ($command->{alone} ? $command->{pid} : (), descendants($command->{pid}));
}

sub usage_of {
  my ($command) = @_;
  my %now = counters();
  my $peak = resident(members($command));
  my %words = (cpu_us => cpu_us(members($command)), rss => $peak > $command->{peak} ? $peak : $command->{peak});
  $words{$_} = $now{$_} for grep { defined $now{$_} } qw(peak cell_cpu_us);
  return %words;
}

# Something may happen now.
sub look_soon {
  my ($command) = @_;
  return if $command->{alone};
  $command->{pause} = $FIRST_LOOK;
  $command->{look_at} = clock() + $FIRST_LOOK;
}

# Looks at the memory of those whose turn it is, and says how long the next one has.
sub look {
  my ($now, $next) = (clock(), undef);
  for my $command (grep { !$_->{alone} && !$_->{end} } values %commands) {
    if ($now >= $command->{look_at}) {
      my $bytes = resident(members($command));
      $command->{peak} = $bytes if $bytes > $command->{peak};
      $command->{pause} = $command->{pause} * 2 < $LONGEST_LOOK ? $command->{pause} * 2 : $LONGEST_LOOK;
      $command->{look_at} = $now + $command->{pause};
    }
    my $left = $command->{look_at} - $now;
    $next = $left if !defined $next || $left < $next;
  }
  return $next;
}

# ---- the end

# A neighbour may have stopped those who boot or wait, which is no business of theirs: who has a job is left alone.
sub wake {
  my ($command) = @_;
  return if $command->{alone} || $command->{awake};
  kill 'CONT', $command->{pid}, split ' ', slurp("/proc/$command->{pid}/task/$command->{pid}/children");
}

sub terminate {
  my ($command) = @_;
  return if $command->{end};
  if ($command->{alone}) { kill 'TERM', -1 }
  else { kill 'CONT', $command->{pid}; kill 'USR2', $command->{pid} }
}

sub kill_command {
  my ($command) = @_;
  $command->{killed} = 1;
  return complete($command) if $command->{end};
  kill_tree($command);
}

sub kill_tree {
  my ($command) = @_;
  if ($command->{alone}) { kill 9, -1 }
  # Continued first: a program may have stopped its supervisor.
  else { kill 'CONT', $command->{pid}; kill 'USR1', $command->{pid} }
}

# The last words about a command.
sub send_end {
  my ($command, @words) = @_;
  delete $commands{ $command->{id} };
  keep_end($command, @words);
  return if $command->{silent};
  send_frame($_->[0], $command->{id}, $_->[1]) for @words;
}

# The last words of a command, once its processes are dead: the rest of its output, then how it ended.
sub finish {
  my ($command, $ended, $cpu_us, $largest) = @_;
  $command->{end} = { wait => $ended, cpu_us => $cpu_us, rss => $largest };
  complete($command);
}

sub complete {
  my ($command) = @_;
  forward_rest($command) or return;
  my %now = counters();
  my %words = %{ $command->{end} };
  $words{rss} = $command->{peak} if $command->{peak} > $words{rss};
  $words{$_} = $now{$_} for grep { defined $now{$_} } qw(peak cell_cpu_us);
  $words{$_} = $now{$_} - ($command->{counted}{$_} || 0) for grep { defined $now{$_} } qw(oom pids);
  unlink $command->{touch} if $command->{touch} ne '';
  $words{full} = fullness();
  $words{$_} = 1 for grep { $command->{$_} } qw(expired moved);
  my $place = '';
  sysread $command->{where}, $place, 8192 if defined $command->{where};
  close_streams($command);
  my $figures = join ' ', map {"$_=$words{$_}"} sort keys %words;
  send_end($command, defined $place && $place ne '' ? ['P', $place] : (), ['X', $figures]);
  wake($_) for values %commands;
  # A cell with one program is done with it.
  leave() if $command->{alone};
}

# Whoever asks has the output of this command up to that byte.
sub resume {
  my ($id, $from) = @_;
  my $ended = ended_command($id);
  my $command = $commands{$id} || $ended or return;
  my $bytes = retell($command, $from, sub { send_frame($_[0], $id, $_[1]) });
  if ($ended) { send_frame($_->[0], $id, $_->[1]) for @{ $command->{words} }; return }
  @$command{qw(silent credit)} = (0, $CREDIT - $bytes);
  complete($command) if $command->{end};
}

sub reap {
  hear($bell);
  while ((my $pid = waitpid -1, $NOHANG | $UNTRACED) > 0) {
    # $? does not tell who has only been stopped.
    my ($ended, $is_stopped) = ($?, (${^CHILD_ERROR_NATIVE} & 255) == $STOPPED);
    my ($command) = grep { $_->{pid} == $pid && !$_->{end} } values %commands;
    next if !$command;
    if ($is_stopped) {
      # Nobody stops a supervisor but a neighbour who stops all that he can reach.
      kill 'CONT', $pid, descendants($pid) if !$command->{alone};
    } elsif ($command->{alone}) {
      kill 9, -1;
      1 while waitpid(-1, 0) > 0;
      finish($command, $ended, children_usage());
    } else {
      read_status($command);
    }
  }
}

# What the supervisor of a command wrote before it ended. Nothing: somebody has killed it, and its children are ours.
sub read_status {
  my ($command) = @_;
  my $words = '';
  sysread $command->{status}, $words, 256;
  if ($words =~ /^ended (\d+) (\d+) (\d+) (\d)/) {
    my ($inherits, @figures) = ($4, $1, $2, $3);
    # Where a supervisor cannot inherit, all that is left behind comes to us, whosever it was.
    end_orphans() if !$inherits;
    return finish($command, @figures);
  }
  if ($words =~ /^failed (\d+)/) {
    $! = $1;
    close_streams($command);
    return fail_start($command->{id}, "fork: $!", $command->{touch});
  }
  close_streams($command);
  delete $commands{ $command->{id} };
  end_orphans();
  unlink $command->{touch} if $command->{touch} ne '';
  send_end($command, ['L', '']);
}

# Children that came to us because nobody else was left of their ancestors.
sub end_orphans {
  my $look = sub {
    my %kept = map { $_ => 1 } map { ($_->{pid}, descendants($_->{pid})) } values %commands;
    return grep { !$kept{$_} } descendants($$);
  };
  end_all($look);
  for (1 .. 500) {
    # The dead are collected later, by whoever collects all; here it matters that they are dead.
    last if !grep { slurp("/proc/$_/stat") =~ /.*\) [^ZX] /s } $look->();
    select undef, undef, undef, 0.002;
  }
}

1;
