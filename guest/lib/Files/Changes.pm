# Requests that change: contents are staged beside the root first, so that a full disk or a bad path changes nothing.
package Files::Changes;
use strict;
use Exporter 'import';
use Files::Folders
  qw(MISSING close_folder folder forget_folders names_in open_at open_folder part record root_name root_parent);
use Files::Frames qw(fail put refuse);
use Kernel 'kernel_numbers';
our @EXPORT_OK = qw(begin_batch commit describe_files end_batch is_batch plan_steps remove_leftovers stage);

my ($MKDIRAT, $UNLINKAT, $RENAMEAT, $RENAMEAT2, $LINKAT, $FCHMOD, $O_NOFOLLOW)
  = kernel_numbers(qw(mkdirat unlinkat renameat renameat2 linkat fchmod O_NOFOLLOW));
my ($O_WRONLY, $O_CREAT, $O_EXCL, $O_CLOEXEC) = (1, 0100, 0200, 02000000);
my $AS_NEW_FILE = $O_WRONLY | $O_CREAT | $O_EXCL | $O_NOFOLLOW | $O_CLOEXEC;
my ($AT_REMOVEDIR, $NOREPLACE) = (0x200, 1);
my ($ENOENT, $EINTR, $EEXIST, $EINVAL, $ENOSYS) = (2, 4, 17, 22, 38);

my $batch;

sub staging_prefix { return '.hotcell-staging-' . root_name() . '-' }

# Is there a batch of this number?
sub is_batch { return $batch && $batch->{id} == $_[0] }

sub remove_flat {
  my ($name) = @_;
  my $fd = open_folder(root_parent(), $name);
  if ($fd >= 0) {
    for my $file (@{ names_in($fd) || [] }) { syscall $UNLINKAT, $fd, $file, 0 }
    close_folder($fd);
  }
  return syscall($UNLINKAT, root_parent(), $name, $fd >= 0 ? $AT_REMOVEDIR : 0) == 0;
}

# What a helper that was killed has left.
sub remove_leftovers {
  my $prefix = staging_prefix();
  for my $name (@{ names_in(root_parent()) || [] }) { remove_flat($name) if $name =~ /^\Q$prefix\E\d+$/ }
}

sub end_batch {
  return if !$batch;
  close_folder($batch->{fd});
  undef $batch;
  remove_flat(staging_prefix() . $$);
}

# The modes and sizes of the files whose contents follow.
sub begin_batch {
  my ($payload, $id) = @_;
  end_batch();
  my ($parent, $staging) = (root_parent(), staging_prefix() . $$);
  if (syscall($MKDIRAT, $parent, $staging, 0700) != 0) {
    fail('r') if $! != $EEXIST || !remove_flat($staging) || syscall($MKDIRAT, $parent, $staging, 0700) != 0;
  }
  my $fd = open_folder($parent, $staging);
  fail('r') if $fd < 0;
  $batch = { id => $id, fd => $fd, files => [], plan => '', count => 0 };
  describe_files($payload);
}

sub describe_files {
  my @numbers = unpack '(nQ>)*', $_[0];
  push @{ $batch->{files} }, [splice @numbers, 0, 2] while @numbers;
  stage('');
}

sub open_staged {
  my $file = open_at($batch->{fd}, 's' . $batch->{count}, $AS_NEW_FILE);
  fail('r', $batch->{count}) if $file < 0;
  open my $handle, '>&=', $file or exit 71;
  return $handle;
}

# The contents come as one stream, cut by the sizes.
sub stage {
  my ($bytes) = @_;
  my $at = 0;
  while (my $file = $batch->{files}[ $batch->{count} ]) {
    my ($mode, $left) = @$file;
    last if $left > 0 && $at >= length $bytes;
    $batch->{handle} = open_staged() if !defined $batch->{handle};
    my $take = length($bytes) - $at < $left ? length($bytes) - $at : $left;
    while ($take > 0) {
      my $put = syswrite $batch->{handle}, $bytes, $take, $at;
      if (!defined $put) { next if $! == $EINTR; fail('r', $batch->{count}) }
      ($at, $take) = ($at + $put, $take - $put);
      $file->[1] -= $put;
    }
    last if $file->[1] > 0;
    syscall $FCHMOD, fileno $batch->{handle}, $mode & 0777;
    close delete $batch->{handle} or fail('r', $batch->{count});
    $batch->{count}++;
  }
  put('a', '');
}

sub plan_steps { $batch->{plan} .= $_[0]; put('a', '') }

# Each step names its path and, if that matters, the record that must be there now.
sub commit {
  my @steps = unpack '(a1 n/a* n/a*)*', $batch->{plan};
  my ($index, $staged, $results, @undo) = (0, 0, '');
  my $result = eval {
    while (@steps) {
      my ($kind, $path, $expected) = splice @steps, 0, 3;
      my ($folder, $name) = part($path) or refuse($index);
      my $step = { index => $index, folder => $folder, name => $name, expected => $expected, undo => \@undo };
      $results .= $kind eq 'W' ? write_file($step, 's' . $staged++) : $kind eq 'D' ? remove_file($step) : remove_folder($step);
      $index++;
    }
    1;
  };
  if (!$result) {
    my $error = $@;
    $_->() for reverse @undo;
    die $error;
  }
  end_batch();
  while (length $results) { put('w', substr $results, 0, 49000, '') }
  put('.', '');
}

sub check_expected {
  my ($step, $record) = @_;
  return if $step->{expected} eq '' || $step->{expected} eq substr $record, 0, length $step->{expected};
  $! = 0;
  fail('c', $step->{index});
}

# For later: the same folder may then be opened anew, or be gone.
sub undo_in {
  my ($step, $action) = @_;
  push @{ $step->{undo} }, sub { my $fd = folder($step->{folder}); $action->($fd) if $fd >= 0 };
}

sub write_file {
  my ($step, $staged) = @_;
  my $made = 0;
  my $make = sub {
    my ($above, $name, $path) = @_;
    return $! == $EEXIST if syscall($MKDIRAT, $above, $name, 0755) != 0;
    push @{ $step->{undo} }, sub { remove_made($path) };
    return ++$made;
  };
  my $fd = folder($step->{folder}, $make);
  fail('r', $step->{index}) if $fd < 0;
  my ($name, $backup) = ($step->{name}, 'b' . $step->{index});
  my $record = record($fd, $name);
  check_expected($step, $record);
  if ($record =~ /^-/) {
    my $moved = syscall $RENAMEAT2, $batch->{fd}, $staged, $fd, $name, $NOREPLACE;
    if ($moved != 0 && ($! == $EINVAL || $! == $ENOSYS)) { $moved = syscall $RENAMEAT, $batch->{fd}, $staged, $fd, $name }
    fail($! == $EEXIST ? 'c' : 'r', $step->{index}) if $moved != 0;
    undo_in($step, sub { syscall $UNLINKAT, $_[0], $name, 0 });
  } else {
    refuse($step->{index}) if $record !~ /^f/;
    # A second name keeps the old file for an undo, while the new one takes its place in one go.
    syscall($LINKAT, $fd, $name, $batch->{fd}, $backup, 0) == 0 or fail('r', $step->{index});
    refuse($step->{index}) if record($batch->{fd}, $backup) !~ /^f/;
    syscall($RENAMEAT, $batch->{fd}, $staged, $fd, $name) == 0 or fail('r', $step->{index});
    undo_in($step, sub { syscall $RENAMEAT, $batch->{fd}, $backup, $_[0], $name });
  }
  return pack('n', $made) . record($fd, $name);
}

sub remove_file {
  my ($step) = @_;
  my ($fd, $name, $backup) = (folder($step->{folder}), $step->{name}, 'b' . $step->{index});
  fail($! == $ENOENT ? 'm' : 'r', $step->{index}) if $fd < 0;
  my $record = record($fd, $name);
  check_expected($step, $record);
  if ($record =~ /^-/) { $! = 0; fail('m', $step->{index}) }
  refuse($step->{index}) if $record !~ /^f/;
  syscall($RENAMEAT, $fd, $name, $batch->{fd}, $backup) == 0 or fail('r', $step->{index});
  undo_in($step, sub { syscall $RENAMEAT, $batch->{fd}, $backup, $_[0], $name });
  refuse($step->{index}) if record($batch->{fd}, $backup) !~ /^f/;
  return pack('n', 1) . MISSING;
}

# Only if nothing is in it any more.
sub remove_folder {
  my ($step) = @_;
  my ($fd, $name) = (folder($step->{folder}), $step->{name});
  my $is_gone = $fd >= 0 && syscall($UNLINKAT, $fd, $name, $AT_REMOVEDIR) == 0;
  if ($is_gone) { undo_in($step, sub { syscall $MKDIRAT, $_[0], $name, 0755 }) }
  forget_folders(1);
  return pack('n', $is_gone ? 1 : 0) . MISSING;
}

sub remove_made {
  my ($path) = @_;
  my ($folder, $name) = part($path);
  my $fd = folder($folder);
  syscall $UNLINKAT, $fd, $name, $AT_REMOVEDIR if $fd >= 0;
  forget_folders(1);
}

1;
