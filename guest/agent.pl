# PID 1 of a cell that takes commands: perl agent.pl [IN OUT]
# One connection (the two FIFOs, else stdin and stdout) carries the streams of all commands in frames: a type, the number
# of the command, a length, the bytes. README.md has the list. No modules but what perl-base has, because this starts
# with every cell. Ends with its input, and so with the server.
use strict;
use Config;

my ($folder) = $0 =~ m{^(.*/)};
require((defined $folder ? $folder : './') . 'figures.pl');

my $PRCTL = $Config{archname} =~ /^aarch64/ ? 167 : 157;
my ($SET_DUMPABLE, $SET_SUBREAPER) = (4, 36);
my ($SETFL, $NONBLOCK, $NOHANG, $UNTRACED, $STOPPED) = (4, 2048, 1, 2, 127);
my ($EINTR, $EAGAIN, $EACCES) = (4, 11, 13);
my $CHUNK = 65536;
# A look at the memory of a command costs a look at every process, so looks become rare when nothing happens.
my ($FIRST_LOOK, $LONGEST_LOOK) = (0.1, 5);

# SECURITY: at its end it kills all it can see, which must be a cell and never the host.
die "agent.pl: not PID 1 of a cell\n" if $$ != 1;
if (@ARGV) {
  open STDIN, '<', $ARGV[0] or exit 71;
  open STDOUT, '>', $ARGV[1] or exit 71;
}
# SECURITY: otherwise a program, being the same user, could open our streams in /proc/1/fd and forge what we say.
syscall $PRCTL, $SET_DUMPABLE, 0, 0, 0, 0;
# The commands get their own pipes; this one stays here.
$^F = 2;
chdir '/tmp';
umask 022;

my $input = '';
my %commands;
pipe my $bell_read, my $bell_write;
fcntl $_, $SETFL, $NONBLOCK for $bell_read, $bell_write;
$SIG{CHLD} = sub { syswrite $bell_write, '.' };
$SIG{PIPE} = 'IGNORE';

sub send_frame {
  my ($type, $id, $payload) = @_;
  my $frame = pack('a1NN', $type, $id, length $payload) . $payload;
  while (length $frame) {
    my $put = syswrite STDOUT, $frame;
    if (!defined $put) { next if $! == $EINTR; leave() }
    substr $frame, 0, $put, '';
  }
}

# Whoever is left dies with us: this is the end of the namespace.
sub leave { kill 9, -1; exit 0 }

# Stops all that a look finds before the first one dies, until it finds nobody new: who is stopped cannot fork. The
# limit of processes bounds how long that takes.
sub end_all {
  my ($look) = @_;
  my %stopped;
  for (1 .. 200) {
    my @fresh = grep { !$stopped{$_}++ } $look->();
    last if !@fresh;
    kill 'STOP', @fresh;
  }
  kill 9, keys %stopped;
}

sub members {
  my ($command) = @_;
  return ($command->{alone} ? $command->{pid} : (), descendants($command->{pid}));
}

# Becomes the program. Runs in a child of its own.
sub become {
  my ($start, $in, $out, $err) = @_;
  open STDIN, '<&', $in;
  open STDERR, '>&', $err;
  open STDOUT, '>&', $out;
  $SIG{$_} = 'DEFAULT' for qw(CHLD PIPE USR1);
  syscall $PRCTL, $SET_DUMPABLE, 1, 0, 0, 0;
  # When memory runs out, programs go first and the agent last.
  if (open my $file, '>', '/proc/self/oom_score_adj') { print $file 500; close $file }
  setpgrp 0, 0;
  my @words = @{ $start->{argv} };
  %ENV = (%ENV, %{ $start->{env} });
  my $what = $start->{cwd};
  if (chdir $what) { $what = $words[0]; exec { $what } @words }
  # As a shell ends when it cannot start a program.
  my $code = $! == $EACCES ? 126 : 127;
  syswrite STDERR, "$what: $!\n";
  exit $code;
}

# A process that stays with one command, to inherit what its children leave behind: so their tree has one root that
# nobody can leave. Says how it ended, and only when nothing of it is left.
sub supervise {
  my ($start, $in, $out, $err, $status) = @_;
  my $inherits = syscall($PRCTL, $SET_SUBREAPER, 1, 0, 0, 0) == 0 ? 1 : 0;
  my $program = fork;
  if (!defined $program) { syswrite $status, 'failed ' . ($! + 0); return }
  become($start, $in, $out, $err) if $program == 0;
  close $_ for $in, $out, $err;
  open STDERR, '>', '/dev/null';
  my $look = sub { descendants($$) };
  $SIG{USR1} = sub { end_all($look) };
  my $ended;
  until (defined $ended) {
    my $pid = waitpid -1, 0;
    $ended = $? if $pid == $program;
    last if $pid < 0;
  }
  for (1 .. 500) {
    end_all($look);
    1 while waitpid(-1, $NOHANG) > 0;
    last if !$look->();
    select undef, undef, undef, 0.002;
  }
  my ($cpu_us, $largest) = children_usage();
  syswrite $status, "ended $ended $cpu_us $largest $inherits";
}

sub fail_start {
  my ($id, $why, $touch) = @_;
  unlink $touch if defined $touch && $touch ne '';
  send_frame('F', $id, $why);
}

sub start {
  my ($id, $payload) = @_;
  my ($alone, $cwd, $touch, $count, @words) = split /\0/, $payload, -1;
  my @argv = splice @words, 0, $count;
  my %env = map { split /=/, $_, 2 } @words;
  my $start = { cwd => $cwd, argv => \@argv, env => \%env };
  my %counted = counters();
  if ($touch ne '') {
    # Not empty: ruby looks at the first byte before its bootstrap can run.
    open my $file, '>', $touch or return fail_start($id, "$touch: $!");
    print $file "\n";
    close $file or return fail_start($id, "$touch: $!");
  }
  my %pipes;
  for my $name (qw(in out err status)) {
    pipe $pipes{"${name}_read"}, $pipes{"${name}_write"} or return fail_start($id, "pipe: $!", $touch);
  }
  my $child = fork;
  return fail_start($id, "fork: $!", $touch) if !defined $child;
  if ($child == 0) {
    # Copies of the others' streams would keep them from ending.
    for my $other (values %commands) { close $_ for grep { defined } @$other{qw(in out err status)} }
    close $_ for @pipes{qw(in_write out_read err_read status_read)}, $bell_read, $bell_write;
    open STDIN, '<', '/dev/null';
    open STDOUT, '>', '/dev/null';
    my @streams = @pipes{qw(in_read out_write err_write)};
    become($start, @streams) if $alone;
    supervise($start, @streams, $pipes{status_write});
    kill 9, $$;
  }
  close $_ for @pipes{qw(in_read out_write err_write status_write)};
  fcntl $_, $SETFL, $NONBLOCK for @pipes{qw(in_write out_read err_read)};
  $commands{$id} = {
    id => $id, pid => $child, alone => $alone, touch => $touch, counted => \%counted,
    in => $pipes{in_write}, out => $pipes{out_read}, err => $pipes{err_read}, status => $pipes{status_read},
    pending => '', closing => 0, credit => 262144, peak => 0,
  };
  look_soon($commands{$id});
  if ($alone) { close delete $commands{$id}{status} }
}

sub feed {
  my ($command) = @_;
  return if !defined $command->{in};
  while (length $command->{pending}) {
    my $put = syswrite $command->{in}, $command->{pending};
    if (!defined $put) {
      return if $! == $EAGAIN || $! == $EINTR;
      $command->{pending} = '';
      $command->{closing} = 1;
      last;
    }
    substr $command->{pending}, 0, $put, '';
  }
  close delete $command->{in} if $command->{closing};
}

# Passes on what there is, within the credit of the command; false when the stream has ended.
sub forward {
  my ($command, $name, $type) = @_;
  return 1 if $command->{credit} <= 0;
  my $room = $command->{credit} < $CHUNK ? $command->{credit} : $CHUNK;
  my $got = sysread $command->{$name}, my $bytes, $room;
  return $! == $EAGAIN || $! == $EINTR if !defined $got;
  if ($got == 0) { close delete $command->{$name}; return 0 }
  $command->{credit} -= $got;
  send_frame($type, $command->{id}, $bytes);
  return 1;
}

sub usage_of {
  my ($command) = @_;
  my %now = counters();
  my $peak = resident(members($command));
  my %words = (cpu_us => cpu_us(members($command)), rss => $peak > $command->{peak} ? $peak : $command->{peak});
  $words{$_} = $now{$_} for grep { defined $now{$_} } qw(peak cell_cpu_us);
  return %words;
}

# The last words of a command, once its processes are dead: the rest of its output, then how it ended.
sub finish {
  my ($command, $ended, $cpu_us, $largest) = @_;
  $command->{end} = { wait => $ended, cpu_us => $cpu_us, rss => $largest };
  complete($command);
}

sub complete {
  my ($command) = @_;
  for my $stream ([out => 'O'], [err => 'e']) {
    my ($name, $type) = @$stream;
    while (defined $command->{$name}) {
      if ($command->{credit} <= 0) {
        return if !$command->{killed};
        # Whoever kills does not wait for output that nobody takes.
        close delete $command->{$name};
        last;
      }
      # Somebody outside of this command may hold the other end: what is not there now will not come.
      my $before = $command->{credit};
      forward($command, $name, $type) or last;
      close delete $command->{$name} if defined $command->{$name} && $command->{credit} == $before;
    }
  }
  my %now = counters();
  my %words = %{ $command->{end} };
  $words{rss} = $command->{peak} if $command->{peak} > $words{rss};
  $words{$_} = $now{$_} for grep { defined $now{$_} } qw(peak cell_cpu_us);
  $words{$_} = $now{$_} - ($command->{counted}{$_} || 0) for grep { defined $now{$_} } qw(oom pids);
  unlink $command->{touch} if $command->{touch} ne '';
  $words{full} = fullness();
  close $_ for grep { defined } @$command{qw(in status)};
  delete $commands{ $command->{id} };
  send_frame('X', $command->{id}, join ' ', map {"$_=$words{$_}"} sort keys %words);
  wake($_) for values %commands;
  # A cell with one program is done with it.
  leave() if $command->{alone};
}

sub reap {
  sysread $bell_read, my $rings, 4096;
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
  sysread $command->{status}, my $words, 256;
  if ($words =~ /^ended (\d+) (\d+) (\d+) (\d)/) {
    my ($inherits, @figures) = ($4, $1, $2, $3);
    # Where a supervisor cannot inherit, all that is left behind comes to us, whosever it was.
    end_orphans() if !$inherits;
    return finish($command, @figures);
  }
  if ($words =~ /^failed (\d+)/) {
    $! = $1;
    close $_ for grep { defined } @$command{qw(in out err status)};
    delete $commands{ $command->{id} };
    return fail_start($command->{id}, "fork: $!", $command->{touch});
  }
  close $_ for grep { defined } @$command{qw(in out err status)};
  delete $commands{ $command->{id} };
  end_orphans();
  unlink $command->{touch} if $command->{touch} ne '';
  send_frame('L', $command->{id}, '');
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

sub handle {
  my ($type, $id, $payload) = @_;
  return start($id, $payload) if $type eq 'S';
  my $command = $commands{$id} or return;
  if ($type eq 'I') {
    wake($command);
    $command->{awake} = 1;
    $command->{pending} .= $payload;
    feed($command);
    look_soon($command);
  }
  elsif ($type eq 'E') { $command->{closing} = 1; feed($command) }
  elsif ($type eq 'C') { $command->{credit} += unpack 'N', $payload; complete($command) if $command->{end} }
  elsif ($type eq 'K') { kill_command($command) }
  elsif ($type eq 'U') {
    my %words = usage_of($command);
    send_frame('U', $id, join ' ', map {"$_=$words{$_}"} sort keys %words);
  }
}

# A neighbour may have stopped those who boot or wait, which is no business of theirs: who has a job is left alone.
sub wake {
  my ($command) = @_;
  return if $command->{alone} || $command->{awake};
  kill 'CONT', $command->{pid}, split ' ', slurp("/proc/$command->{pid}/task/$command->{pid}/children");
}

sub kill_command {
  my ($command) = @_;
  $command->{killed} = 1;
  return complete($command) if $command->{end};
  if ($command->{alone}) { kill 9, -1 }
  # Continued first: a program may have stopped its supervisor.
  else { kill 'CONT', $command->{pid}; kill 'USR1', $command->{pid} }
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

# Seconds that only go forward.
sub clock { return (split ' ', slurp('/proc/uptime'))[0] || 0 }

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

send_frame('R', 0, '');
for (;;) {
  my ($reads, $writes) = ('', '');
  vec($reads, fileno STDIN, 1) = 1;
  vec($reads, fileno $bell_read, 1) = 1;
  for my $command (values %commands) {
    next if $command->{end};
    for my $name (qw(out err)) {
      vec($reads, fileno $command->{$name}, 1) = 1 if defined $command->{$name} && $command->{credit} > 0;
    }
    vec($writes, fileno $command->{in}, 1) = 1 if defined $command->{in} && length $command->{pending};
  }
  next if select($reads, $writes, undef, look()) <= 0;
  # Output before ends, so that nothing of it is overtaken.
  for my $command (values %commands) {
    next if $command->{end};
    feed($command) if defined $command->{in} && vec $writes, fileno $command->{in}, 1;
    for my $stream ([out => 'O'], [err => 'e']) {
      my ($name, $type) = @$stream;
      forward($command, $name, $type) if defined $command->{$name} && vec $reads, fileno $command->{$name}, 1;
    }
  }
  reap() if vec $reads, fileno $bell_read, 1;
  take_input() if vec $reads, fileno STDIN, 1;
}
