# PID 1 of a cell that takes commands: perl agent.pl [--lasting] [IN OUT]
# One connection (the two FIFOs, else stdin and stdout) carries the streams of all commands in frames: a type, the number
# of the command, a length, the bytes. README.md has the list. No modules but what perl-base has, because this starts
# with every cell. Ends with its input, and so with the server; unless it is to last: then it waits for the next one.
use strict;
use Config;

my ($folder) = $0 =~ m{^(.*/)};
require((defined $folder ? $folder : './') . $_) for qw(figures.pl lasting.pl terminal.pl);

my ($PRCTL, $DUP3, $SIGPROCMASK, $SIGNALFD) =
  $Config{archname} =~ /^aarch64/ ? (167, 24, 135, 74) : (157, 292, 14, 289);
my ($SET_DUMPABLE, $SET_SUBREAPER, $SET_NO_NEW_PRIVS) = (4, 36, 38);
my ($SETFD, $SETFL, $NONBLOCK, $NOHANG, $UNTRACED, $STOPPED) = (2, 4, 2048, 1, 2, 127);
my ($BLOCK, $UNBLOCK, $CLOEXEC) = (0, 1, 02000000);
my ($USR1, $USR2, $CHLD) = (10, 12, 17);
my ($EINTR, $EAGAIN, $EACCES) = (4, 11, 13);
my ($CHUNK, $CREDIT) = (65536, 262144);
# What follows the marker in a greeting: bytes that tell one greeting from another.
my $GREETING = 8;
# Where the shell of a command may say in which folder it ends.
my $WHERE = 19;
# A look at the memory of a command costs a look at every process, so looks become rare when nothing happens.
my ($FIRST_LOOK, $LONGEST_LOOK) = (0.1, 5);

# SECURITY: at its end it kills all it can see, which must be a cell and never the host.
die "agent.pl: not PID 1 of a cell\n" if $$ != 1;
my $lasting = @ARGV && $ARGV[0] eq '--lasting';
shift @ARGV if $lasting;
if (@ARGV) {
  # With both ends open here a FIFO neither ends nor breaks when the server does.
  my ($in, $out) = $lasting ? ('+<', '+<') : ('<', '>');
  open STDIN, $in, $ARGV[0] or exit 71;
  open STDOUT, $out, $ARGV[1] or exit 71;
}
# SECURITY: otherwise a program, being the same user, could open our streams in /proc/1/fd and forge what we say.
syscall $PRCTL, $SET_DUMPABLE, 0, 0, 0, 0;
# SECURITY: not every driver can ask for it; whoever has it keeps it, and so does every program.
syscall $PRCTL, $SET_NO_NEW_PRIVS, 1, 0, 0, 0;
# The commands get their own pipes; this one stays here.
$^F = 2;
chdir '/tmp';
umask 022;

my $input = '';
my %commands;
# In a cell that lasts: bytes by which the next server makes itself known, and commands whose end nobody has noted.
my $marker;
my $greeted = '';
my %ended;
# Read from a file and not by handlers: perl runs those between its own operations, so a signal that comes just before a
# system call that waits would wait with it. For a supervisor that is not ready yet they are kept, too.
my $signals = pack 'Q', 1 << $USR1 - 1 | 1 << $USR2 - 1 | 1 << $CHLD - 1;
syscall $SIGPROCMASK, $BLOCK, $signals, 0, 8;
my $bell = open_bell() or exit 71;
$SIG{PIPE} = 'IGNORE';

# Each process opens its own: whose signals a copy tells of after a fork is not the same in every kernel.
sub open_bell {
  my $number = syscall $SIGNALFD, -1, $signals, 8, $CLOEXEC;
  return if $number < 0 || !open my $file, '<&=', $number;
  return $file;
}

# Waits for a signal and returns its number.
sub hear {
  my ($from) = @_;
  # Room for one: 128 bytes, and a little more in gVisor.
  sysread $from, my $ring, 255;
  return unpack 'L', $ring;
}

sub put {
  my ($bytes) = @_;
  while (length $bytes) {
    my $put = syswrite STDOUT, $bytes;
    if (!defined $put) { next if $! == $EINTR; leave() }
    substr $bytes, 0, $put, '';
  }
}

sub send_frame {
  my ($type, $id, $payload) = @_;
  put(pack('a1NN', $type, $id, length $payload) . $payload);
}

sub send_output {
  my ($command, $type, $bytes) = @_;
  retain($command, $type, $bytes) if $lasting;
  send_frame($type, $command->{id}, $bytes);
}

# The last words about a command.
sub send_end {
  my ($command, @words) = @_;
  delete $commands{ $command->{id} };
  if ($lasting) {
    $ended{ $command->{id} } = { words => \@words, map { $_ => $command->{$_} } qw(id retained noted) };
    return if $command->{silent};
  }
  send_frame($_->[0], $command->{id}, $_->[1]) for @words;
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
  if (defined $start->{terminal}) { enter_terminal($start->{terminal}) or exit 126 }
  else {
    open STDIN, '<&', $in;
    open STDERR, '>&', $err;
    open STDOUT, '>&', $out;
    setpgrp 0, 0;
  }
  if (defined $start->{where}) {
    if (fileno $start->{where} == $WHERE) { fcntl $start->{where}, $SETFD, 0 }
    else { syscall $DUP3, fileno $start->{where}, $WHERE, 0 }
  }
  $SIG{PIPE} = 'DEFAULT';
  syscall $SIGPROCMASK, $UNBLOCK, $signals, 0, 8;
  syscall $PRCTL, $SET_DUMPABLE, 1, 0, 0, 0;
  # When memory runs out, programs go first and the agent last.
  if (open my $file, '>', '/proc/self/oom_score_adj') { print $file 500; close $file }
  my @words = @{ $start->{argv} };
  %ENV = (%ENV, %{ $start->{env} });
  my ($what, $fallback) = @$start{qw(cwd fallback)};
  # The agent has looked before, but with its own eyes.
  if (chdir $what or $fallback ne '' && chdir $fallback) { $what = $words[0]; exec { $what } @words }
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
  my $asked = open_bell();
  my $program = $asked && fork;
  if (!defined $program) { syswrite $status, 'failed ' . ($! + 0); return }
  become($start, $in, $out, $err) if $program == 0;
  close $_ for grep { defined } $in, $out, $err;
  open STDERR, '>', '/dev/null';
  my $look = sub { descendants($$) };
  my ($ended, $patient);
  for (;;) {
    my $pid;
    while (($pid = waitpid -1, $NOHANG) > 0) { $ended = $? if $pid == $program }
    # Who was asked to end may take his time, also when the program itself was quicker, until somebody kills them.
    last if $pid < 0 || defined $ended && !$patient;
    my $signal = hear($asked);
    end_all($look) if $signal == $USR1;
    if ($signal == $USR2) { $patient = 1; kill 'TERM', $look->() }
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
  send_end({ id => $id, noted => 0 }, ['F', $why]);
}

# The ends of the streams of a command: ours, and those of the program.
sub open_streams {
  my ($size, $tells_where) = @_;
  my %ours;
  my %theirs;
  if ($size ne '') {
    ($ours{out}, $theirs{terminal}, $ours{held}) = open_terminal($size) or return;
    open $ours{in}, '>&', $ours{out} or return;
  } else {
    pipe $theirs{in}, $ours{in} or return;
    for my $name (qw(out err)) { pipe $ours{$name}, $theirs{$name} or return }
  }
  for my $name ('status', $tells_where ? 'where' : ()) { pipe $ours{$name}, $theirs{$name} or return }
  # Nobody reads before the end where a command says that it is: whoever says too much must not wait.
  fcntl $_, $SETFL, $NONBLOCK for grep { defined } @ours{qw(in out err where)}, $theirs{where};
  return (\%ours, \%theirs);
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

sub close_streams {
  my ($command) = @_;
  close $_ for grep { defined } @$command{qw(in out err status where held)};
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
  return if !$command->{closing};
  # What ends the input of a terminal is a key.
  if ($command->{terminal}) { $command->{closing} = 0; syswrite $command->{in}, "\x04" }
  else { close delete $command->{in} }
}

# Passes on what there is, within the credit of the command; false when the stream has ended.
sub forward {
  my ($command, $name, $type) = @_;
  return 1 if $command->{credit} <= 0;
  my $room = $command->{credit} < $CHUNK ? $command->{credit} : $CHUNK;
  my $got = sysread $command->{$name}, my $bytes, $room;
  return 1 if !defined $got && ($! == $EAGAIN || $! == $EINTR);
  # A terminal that nobody has open any more gives an error.
  if (!$got) { close delete $command->{$name}; return 0 }
  $command->{credit} -= $got;
  send_output($command, $type, $bytes);
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
        return if !$command->{killed} || $command->{silent};
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
  $words{moved} = 1 if $command->{moved};
  my $place = '';
  sysread $command->{where}, $place, 8192 if defined $command->{where};
  close_streams($command);
  my $figures = join ' ', map {"$_=$words{$_}"} sort keys %words;
  send_end($command, defined $place && $place ne '' ? ['P', $place] : (), ['X', $figures]);
  wake($_) for values %commands;
  # A cell with one program is done with it.
  leave() if $command->{alone};
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
  sysread $command->{status}, my $words, 256;
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

sub handle {
  my ($type, $id, $payload) = @_;
  return start($id, $payload) if $type eq 'S';
  if ($lasting) {
    if ($type eq 'M') { $marker = $payload; return }
    return resume($id, $payload) if $type eq 'Z';
    delete $ended{$id} if $type eq 'D';
    note($ended{$id}, unpack 'N', $payload) if $type eq 'C' && $ended{$id};
  }
  my $command = $commands{$id} or return;
  if ($type eq 'I') {
    wake($command);
    $command->{awake} = 1;
    $command->{pending} .= $payload;
    feed($command);
    look_soon($command);
  }
  elsif ($type eq 'E') { $command->{closing} = 1; feed($command) }
  elsif ($type eq 'C') {
    $command->{credit} += unpack 'N', $payload;
    note($command, unpack 'N', $payload) if $lasting;
    complete($command) if $command->{end};
  }
  elsif ($type eq 'T') { terminate($command) }
  elsif ($type eq 'W') { resize_terminal($command->{out}, $payload) if $command->{terminal} && defined $command->{out} }
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
  if ($command->{alone}) { kill 9, -1 }
  # Continued first: a program may have stopped its supervisor.
  else { kill 'CONT', $command->{pid}; kill 'USR1', $command->{pid} }
}

# The next server is there. Until it has asked for a command, it hears nothing of that one. It may say the same greeting
# several times, because the first ones may get lost in what the last server had begun to say.
sub greet {
  my ($greeting) = @_;
  return if $greeting eq $greeted;
  $greeted = $greeting;
  for my $command (values %commands) { @$command{qw(silent credit)} = (1, 0) }
  put($greeting);
  send_frame('H', 0, join ' ', sort { $a <=> $b } keys %commands, keys %ended);
}

# Whoever asks has the output of this command up to that byte.
sub resume {
  my ($id, $from) = @_;
  my $command = $commands{$id} || $ended{$id} or return;
  my $bytes = retell($command, $from, sub { send_frame($_[0], $id, $_[1]) });
  if ($ended{$id}) { send_frame($_->[0], $id, $_->[1]) for @{ $command->{words} }; return }
  @$command{qw(silent credit)} = (0, $CREDIT - $bytes);
  complete($command) if $command->{end};
}

# Does what the frames say that are whole within so many bytes of the input; returns how many bytes they were.
sub take_frames {
  my ($bound) = @_;
  my $taken = 0;
  while ($bound - $taken >= 9) {
    my ($type, $id, $size) = unpack 'a1NN', $input;
    last if $bound - $taken < 9 + $size;
    my $payload = substr $input, 9, $size;
    substr $input, 0, 9 + $size, '';
    $taken += 9 + $size;
    handle($type, $id, $payload);
  }
  return $taken;
}

sub take_input {
  my $seen = length $input;
  my $got = sysread STDIN, $input, $CHUNK, $seen;
  if (!defined $got) { return if $! == $EINTR || $! == $EAGAIN; leave() }
  leave() if $got == 0;
  if (defined $marker) {
    my $length = $GREETING + length $marker;
    my $from = $seen < $length ? 0 : $seen - $length;
    while ((my $at = index $input, $marker, $from) >= 0) {
      # What the last server had begun to say will never be finished.
      substr $input, 0, $at - take_frames($at), '';
      return if length $input < $length;
      greet(substr $input, 0, $length, '');
      $from = 0;
    }
  }
  take_frames(length $input);
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
  vec($reads, fileno $bell, 1) = 1;
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
  reap() if vec $reads, fileno $bell, 1;
  take_input() if vec $reads, fileno STDIN, 1;
}
