# The processes between the agent and a program.
package Agent::Supervisor;
use strict;
use Exporter 'import';
use Agent::Figures qw(children_usage descendants);
use Agent::Signals qw(hear open_bell release_signals);
use Agent::Terminal 'enter_terminal';
use Kernel 'kernel_numbers';
our @EXPORT_OK = qw(become end_all forbid_looks supervise);

my ($PRCTL, $DUP3) = kernel_numbers(qw(prctl dup3));
my ($SET_DUMPABLE, $SET_SUBREAPER, $SET_NO_NEW_PRIVS) = (4, 36, 38);
my ($SETFD, $NOHANG, $EACCES) = (2, 1, 13);
# Where the shell of a command may say in which folder it ends.
my $WHERE = 19;

# SECURITY: otherwise a program, being the same user, could open our streams in /proc/1/fd and forge what we say.
sub forbid_looks {
  syscall $PRCTL, $SET_DUMPABLE, 0, 0, 0, 0;
  # SECURITY: not every driver can ask for it; whoever has it keeps it, and so does every program.
  syscall $PRCTL, $SET_NO_NEW_PRIVS, 1, 0, 0, 0;
}

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
  release_signals();
  syscall $PRCTL, $SET_DUMPABLE, 1, 0, 0, 0;
  # When memory runs out, programs go first and the agent last.
  if (open my $file, '>', '/proc/self/oom_score_adj') { print $file 500; close $file }
  my @words = @{ $start->{argv} };
  %ENV = (%ENV, %{ $start->{env} });
  my ($what, $fallback) = @$start{qw(cwd fallback)};
  # The agent has looked before, but with its own eyes.
  if (chdir $what or $fallback ne '' && chdir $fallback) {
    $what = $words[0];
    # We say ourselves what is wrong.
    local $^W = 0;
    exec { $what } @words;
  }
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
    end_all($look) if $signal eq 'USR1';
    if ($signal eq 'USR2') { $patient = 1; kill 'TERM', $look->() }
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

1;
