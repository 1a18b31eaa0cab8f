# The last steps before the program of a run: the rest of the walls, and then somebody else's code.
package Nest::Program;
use strict;
use Exporter 'import';
use Kernel 'kernel_numbers';
use Nest::Job qw(read_job write_file);
use Nest::Walls 'lay_walls';
our @EXPORT_OK = qw(become_program);

my ($DUP3, $EXIT_GROUP) = kernel_numbers(qw(dup3 exit_group));
my $READY = "\x06";
my $FAILED = 71;
# What a shell says when there is no such program, or it cannot be started.
my ($NOT_FOUND, $NOT_STARTED) = (127, 126);
my $ENOENT = 2;

sub become_program {
  my ($plan, $order, $ends, $facts) = @_;
  my $walled = eval {
    my $number = 0;
    for my $name (qw(in out err)) {
      syscall($DUP3, fileno $ends->{$name}, $number++, 0) != -1 or die "$name: $!\n";
      close $ends->{$name};
    }
    lay_walls($plan->{program}, $facts);
    chdir $plan->{workdir} or die "$plan->{workdir}: $!\n";
    1;
  };
  if (!$walled) {
    syswrite $ends->{status}, "F$@";
    syscall $EXIT_GROUP, $FAILED;
  }
  close $ends->{status};
  $SIG{CHLD} = 'DEFAULT';
  umask 022;
  %ENV = %{$order->{env}};
  report($order->{argv}) if $order->{mode} eq 'report';
  # Some interpreters insist on a file that is not empty before they look at what is to be done with it.
  write_file($order->{file}, "\n") if $order->{mode} eq 'hot' && length $order->{file};
  my @argv = @{$order->{argv}};
  if ($order->{mode} eq 'late') {
    syswrite STDOUT, $READY;
    my $job = read_job($order->{file});
    push @argv, @{$job->{args}};
    %ENV = (%ENV, %{$job->{env}});
  }
  exec { $argv[0] } @argv or not_started($argv[0]);
}

sub not_started {
  my $code = $! == $ENOENT ? $NOT_FOUND : $NOT_STARTED;
  syswrite STDERR, "$_[0]: $!\n";
  syscall $EXIT_GROUP, $code;
}

# What is to be seen from inside these walls: some files of the kernel, each with its name and its length.
sub report {
  my ($paths) = @_;
  for my $path (@$paths) {
    my $text = '';
    if (open my $file, '<:raw', $path) { local $/; $text = <$file> // '' }
    else { $text = "error: $!" }
    my $said = "$path\n" . length($text) . "\n$text";
    while (length $said) { substr $said, 0, syswrite(STDOUT, $said) // last, '' }
  }
  syscall $EXIT_GROUP, 0;
}

1;
