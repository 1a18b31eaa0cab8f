# Numbers of Linux that are not the same on every machine: the one table of them for all Perl here.
package Kernel;
use strict;
use Config;
use Exporter 'import';
our @EXPORT_OK = qw(kernel_numbers);

# On x86_64 and on arm64.
my %NUMBERS = (
  clock_gettime => [228, 113],
  close => [3, 57],
  dup3 => [292, 24],
  exit_group => [231, 94],
  fchdir => [81, 50],
  fchmod => [91, 52],
  getrusage => [98, 165],
  linkat => [265, 37],
  mkdirat => [258, 34],
  openat => [257, 56],
  prctl => [157, 167],
  readlinkat => [267, 78],
  renameat => [264, 38],
  renameat2 => [316, 276],
  rt_sigprocmask => [14, 135],
  setsid => [112, 157],
  signalfd4 => [289, 74],
  statfs => [137, 43],
  statx => [332, 291],
  umount2 => [166, 39],
  unlinkat => [263, 35],
  O_DIRECTORY => [0200000, 040000],
  O_NOFOLLOW => [0400000, 0100000],
);
my $machine = $Config{archname} =~ /^aarch64/ ? 1 : 0;

sub kernel_numbers {
  return map { $NUMBERS{$_} ? $NUMBERS{$_}[$machine] : die "no number is known for $_\n" } @_;
}

1;
