# The way to a file, and what it is.
# SECURITY: whoever runs code in the cell can put links anywhere at any time. So no path is ever given to the kernel as a
# whole: each folder on the way is opened by its name alone, relative to the one before, and no link is followed.
package Files::Folders;
use strict;
use Exporter 'import';
use Files::Frames 'fail';
use Kernel 'kernel_numbers';
our @EXPORT_OK = qw(
  BARRED LONGEST_PATH MISSING close_folder folder forget_folders names_in now open_at open_file open_folder open_root part
  record record_of root_name root_parent size_of work_below
);

my ($OPENAT, $CLOSE, $MKDIRAT, $FCHDIR, $STATX, $CLOCK, $O_DIRECTORY, $O_NOFOLLOW)
  = kernel_numbers(qw(openat close mkdirat fchdir statx clock_gettime O_DIRECTORY O_NOFOLLOW));
my ($O_NONBLOCK, $O_CLOEXEC, $O_PATH) = (04000, 02000000, 010000000);
my $AS_FOLDER = $O_PATH | $O_DIRECTORY | $O_NOFOLLOW | $O_CLOEXEC;
# Not waiting, because the other end of a FIFO may never come.
my $AS_FILE = $O_NOFOLLOW | $O_NONBLOCK | $O_CLOEXEC;
my ($AT_FDCWD, $AT_SYMLINK_NOFOLLOW, $AT_EMPTY_PATH) = (-100, 0x100, 0x1000);
my ($ENOENT, $COARSE_CLOCK) = (2, 5);
my ($KEPT_OPEN, $RECORD_BYTES) = (64, 47);
my %KINDS = (0100000 => 'f', 0040000 => 'd', 0120000 => 'l');
my ($missing, $barred) = map { pack "a$RECORD_BYTES", $_ } '-', 'x';

sub LONGEST_PATH () { return 4000 }

sub MISSING () { return $missing }

sub BARRED () { return $barred }

# The folders that are open, from the root down: [path, descriptor]; and the one that the root is in.
my (@open, $parent_path, $root_name);
my $parent = -1;

# False if this is no folder to work below.
sub work_below {
  return ($parent_path, $root_name) = $_[0] =~ m{^(/.*?)/*([^/]+)/*$};
}

sub root_name { return $root_name }

sub root_parent { return $parent }

sub forget_folders {
  my ($from) = @_;
  close_folder((pop @open)->[1]) while @open > $from;
}

sub open_at { my ($fd, $name, $flags) = @_; return syscall $OPENAT, $fd, $name, $flags, 0600 }

sub open_folder { return open_at(@_, $AS_FOLDER) }

sub close_folder { return syscall $CLOSE, $_[0] }

# Every request begins at the root anew, because a command may have moved it away since.
sub open_root {
  forget_folders(0);
  close_folder($parent) if $parent >= 0;
  my $path = $parent_path;
  $parent = syscall $OPENAT, $AT_FDCWD, $path, $O_PATH | $O_DIRECTORY | $O_CLOEXEC, 0;
  fail('r') if $parent < 0;
  my $fd = open_folder($parent, $root_name);
  if ($fd < 0 && $! == $ENOENT) {
    syscall $MKDIRAT, $parent, $root_name, 0755;
    $fd = open_folder($parent, $root_name);
  }
  fail('r') if $fd < 0;
  @open = (['', $fd]);
}

# The descriptor of a folder below the root, '' being the root; -1 with $! if there is none. Good until the next call.
# `$make` is called with a folder and the name that is missing in it.
sub folder {
  my ($path, $make) = @_;
  forget_folders($#open) while @open > 1 && index("$path/", "$open[-1][0]/") != 0;
  my ($at, $fd) = @{ $open[-1] };
  return $fd if $path eq $at;
  for my $name (split m{/}, $at eq '' ? $path : substr $path, length($at) + 1) {
    my $above = $fd;
    $at = $at eq '' ? $name : "$at/$name";
    $fd = open_folder($above, $name);
    if ($fd < 0 && $make && $! == $ENOENT) {
      $make->($above, $name, $at) or return -1;
      $fd = open_folder($above, $name);
    }
    return -1 if $fd < 0;
    # Few descriptors, however deep it goes: the deepest takes the place of the one above it.
    forget_folders($#open) if @open > $KEPT_OPEN;
    push @open, [$at, $fd];
  }
  return $fd;
}

# SECURITY: `..` is the one name that leads out without a link.
sub part {
  my ($path) = @_;
  return if length $path > LONGEST_PATH || $path =~ m{(?:^|/)\.{0,2}(?:/|\z)};
  my $cut = rindex $path, '/';
  return $cut < 0 ? ('', $path) : (substr($path, 0, $cut), substr $path, $cut + 1);
}

my $stat = "\0" x 256;

# A kind, and what tells one state of a file from the next: mode, inode, size, ctime, mtime, as the kernel has them.
sub record {
  my ($fd, $name) = @_;
  my $flags = $name eq '' ? $AT_EMPTY_PATH : $AT_SYMLINK_NOFOLLOW;
  return $! == $ENOENT ? MISSING : BARRED if syscall($STATX, $fd, $name, $flags, 0x7ff, $stat) != 0;
  my $kind = $KINDS{ unpack('x28 v', $stat) & 0170000 } || 'o';
  return $kind . substr($stat, 28, 2) . substr($stat, 32, 16) . substr($stat, 96, 28);
}

sub size_of { return unpack 'x11 Q<', $_[0] }

sub record_of {
  my ($path) = @_;
  my ($folder, $name) = part($path) or return BARRED;
  my $fd = folder($folder);
  return $! == $ENOENT ? MISSING : BARRED if $fd < 0;
  return record($fd, $name);
}

# Nothing, with $!, of a folder that may not be read.
sub names_in {
  my ($fd) = @_;
  return if syscall($FCHDIR, $fd) != 0;
  opendir my $folder, '.' or return;
  return [sort { $a cmp $b } grep { $_ ne '.' && $_ ne '..' } readdir $folder];
}

# The clock that file times are taken from.
sub now {
  my $time = "\0" x 16;
  syscall $CLOCK, $COARSE_CLOCK, $time;
  return $time;
}

# Opens a plain file; what it is else, as a record.
sub open_file {
  my ($fd, $name) = @_;
  # SECURITY: looked at before, because opening a device can do things; and after, because it may have been swapped.
  my $record = record($fd, $name);
  return (undef, $record) if $record !~ /^f/;
  my $file = open_at($fd, $name, $AS_FILE);
  return (undef, $! == $ENOENT ? MISSING : BARRED) if $file < 0;
  open my $handle, '<&=', $file or exit 71;
  $record = record($file, '');
  return ($record =~ /^f/ ? $handle : undef, $record);
}

1;
