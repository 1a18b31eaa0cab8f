# The files of a workspace: perl files.pl ROOT
# Answers framed requests on stdin, one after the other, with the rights of the cell's user. Ends with its input, or when
# nobody has asked for a while. No modules but what perl-base has. A frame is as with agent.pl: one byte of type, the
# number of the request and the length of what follows, both as four bytes, highest first. Paths are below ROOT.
#   S paths, parted by NUL          -> s records, in order; . and the clock of file times
#   G limit (8 bytes), paths        -> for each f record, d content; . and the clock
#   L most entries (4 bytes), path  -> D path, then names with records; .
#   W most entries, ignored names   -> the same for all folders below ROOT; .
#   T open, next or close           -> a portion of all files: E path, link target, record; d content; . and 1 for more
#   B, M modes and sizes; C their contents; P steps -> a for each; X carries out the steps -> w results; .
# In place of . an answer may end with ! and what is wrong. A record is what `record` makes.
# SECURITY: whoever runs code in the cell can put links anywhere at any time. So no path is ever given to the kernel as a
# whole: each folder on the way is opened by its name alone, relative to the one before, and no link is followed.
use strict;
use Config;

my $is_arm = $Config{archname} =~ /^aarch64/;
my ($OPENAT, $CLOSE, $MKDIRAT, $UNLINKAT, $RENAMEAT, $RENAMEAT2, $LINKAT, $READLINKAT, $FCHMOD, $FCHDIR, $STATX, $CLOCK, $PRCTL)
  = $is_arm
  ? (56, 57, 34, 35, 38, 276, 37, 78, 52, 50, 291, 113, 167)
  : (257, 3, 258, 263, 264, 316, 265, 267, 91, 81, 332, 228, 157);
my ($O_DIRECTORY, $O_NOFOLLOW) = $is_arm ? (040000, 0100000) : (0200000, 0400000);
my ($O_WRONLY, $O_CREAT, $O_EXCL, $O_NONBLOCK, $O_CLOEXEC, $O_PATH) = (1, 0100, 0200, 04000, 02000000, 010000000);
my $AS_FOLDER = $O_PATH | $O_DIRECTORY | $O_NOFOLLOW | $O_CLOEXEC;
# Not waiting, because the other end of a FIFO may never come.
my $AS_FILE = $O_NOFOLLOW | $O_NONBLOCK | $O_CLOEXEC;
my $AS_NEW_FILE = $O_WRONLY | $O_CREAT | $O_EXCL | $O_NOFOLLOW | $O_CLOEXEC;
my ($AT_FDCWD, $AT_REMOVEDIR, $AT_SYMLINK_NOFOLLOW, $AT_EMPTY_PATH) = (-100, 0x200, 0x100, 0x1000);
my ($NOREPLACE, $COARSE_CLOCK, $SET_DUMPABLE) = (1, 5, 4);
my ($ENOENT, $EINTR, $EEXIST, $EINVAL, $ENOSPC, $ENOSYS, $EDQUOT) = (2, 4, 17, 22, 28, 38, 122);
my ($CHUNK, $LONGEST_REQUEST, $IDLE_SECONDS, $LONGEST_PATH) = (65536, 1048576, 600, 4000);
# How much of an archive is sent for one request, and how many archives may be under way.
my ($PORTION, $ARCHIVES) = (524288, 8);
my ($KEPT_OPEN, $RECORD_BYTES, $TICK) = (64, 47, 0.012);
my %KINDS = (0100000 => 'f', 0040000 => 'd', 0120000 => 'l');
my $MISSING = pack "a$RECORD_BYTES", '-';
my $BARRED = pack "a$RECORD_BYTES", 'x';

my ($parent_path, $root_name) = $ARGV[0] =~ m{^(/.*?)/*([^/]+)/*$} or die "files.pl: no folder\n";
my ($nothing, $dot) = ('', '.');
# SECURITY: otherwise another program of the same user could write our answers.
syscall $PRCTL, $SET_DUMPABLE, 0, 0, 0, 0;
umask 022;

my ($input, $output, $asked, $id) = ('', '', '', 0);
my (%archives, $batch);

# ---- frames

sub flush {
  while (length $output) {
    my $put = syswrite STDOUT, $output;
    if (!defined $put) { next if $! == $EINTR; exit 0 }
    substr $output, 0, $put, '';
  }
}

sub put {
  my ($type, $payload) = @_;
  $output .= pack('a1NN', $type, $id, length $payload) . $payload;
  flush() if length $output >= $CHUNK;
}

# Ends a request: m missing, r refused, f disk full, c changed meanwhile, l too much; with what it is about, as a number.
sub fail {
  my ($why, $index) = @_;
  my $errno = $! + 0;
  $why = 'f' if $errno == $ENOSPC || $errno == $EDQUOT;
  die { why => $why, index => $index || 0, errno => $errno };
}

sub refuse { $! = 0; fail('r', @_) }

sub next_frame {
  for (;;) {
    if (length $input >= 9) {
      my ($type, $number, $size) = unpack 'a1NN', $input;
      exit 70 if $size > $LONGEST_REQUEST;
      if (length $input >= 9 + $size) {
        my $payload = substr $input, 9, $size;
        substr $input, 0, 9 + $size, '';
        return ($type, $number, $payload);
      }
    }
    my $ready = '';
    vec($ready, fileno STDIN, 1) = 1;
    my $count = select $ready, undef, undef, $IDLE_SECONDS;
    next if $count < 0;
    return if $count == 0;
    my $got = sysread STDIN, $input, $CHUNK, length $input;
    next if !defined $got && $! == $EINTR;
    return if !$got;
  }
}

# ---- folders

# The folders that are open, from the root down: [path, descriptor].
my @open;
my $parent = -1;

sub forget_folders {
  my ($from) = @_;
  syscall $CLOSE, (pop @open)->[1] while @open > $from;
}

sub open_at { my ($fd, $name, $flags) = @_; return syscall $OPENAT, $fd, $name, $flags, 0600 }

# Every request begins at the root anew, because a command may have moved it away since.
sub open_root {
  forget_folders(0);
  syscall $CLOSE, $parent if $parent >= 0;
  my $path = $parent_path;
  $parent = syscall $OPENAT, $AT_FDCWD, $path, $O_PATH | $O_DIRECTORY | $O_CLOEXEC, 0;
  fail('r') if $parent < 0;
  my $fd = open_at($parent, $root_name, $AS_FOLDER);
  if ($fd < 0 && $! == $ENOENT) {
    syscall $MKDIRAT, $parent, $root_name, 0755;
    $fd = open_at($parent, $root_name, $AS_FOLDER);
  }
  fail('r') if $fd < 0;
  @open = (['', $fd]);
}

# The descriptor of a folder below the root, '' being the root; -1 with $! if there is none. Good until the next call.
# `$make` is called with a folder and the name that is missing in it.
sub folder {
  my ($path, $make) = @_;
  return $open[-1][1] if $path eq $open[-1][0];
  forget_folders($#open) while @open > 1 && index("$path/", "$open[-1][0]/") != 0;
  my ($at, $fd) = @{ $open[-1] };
  for my $name (split m{/}, $at eq '' ? $path : substr $path, length($at) + 1) {
    my $above = $fd;
    $at = $at eq '' ? $name : "$at/$name";
    $fd = open_at($above, $name, $AS_FOLDER);
    if ($fd < 0 && $make && $! == $ENOENT) {
      $make->($above, $name, $at) or return -1;
      $fd = open_at($above, $name, $AS_FOLDER);
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
  return if length $path > $LONGEST_PATH || $path =~ m{(?:^|/)\.{0,2}(?:/|\z)};
  my $cut = rindex $path, '/';
  return $cut < 0 ? ('', $path) : (substr($path, 0, $cut), substr $path, $cut + 1);
}

my $stat = "\0" x 256;

# A kind, and what tells one state of a file from the next: mode, inode, size, ctime, mtime, as the kernel has them.
sub record {
  my ($fd, $name) = @_;
  my $flags = $name eq '' ? $AT_EMPTY_PATH : $AT_SYMLINK_NOFOLLOW;
  return $! == $ENOENT ? $MISSING : $BARRED if syscall($STATX, $fd, $name, $flags, 0x7ff, $stat) != 0;
  my $kind = $KINDS{ unpack('x28 v', $stat) & 0170000 } || 'o';
  return $kind . substr($stat, 28, 2) . substr($stat, 32, 16) . substr($stat, 96, 28);
}

sub size_of { return unpack 'x11 Q<', $_[0] }

sub record_of {
  my ($path) = @_;
  my ($folder, $name) = part($path) or return $BARRED;
  my $fd = folder($folder);
  return $! == $ENOENT ? $MISSING : $BARRED if $fd < 0;
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

# ---- looking

sub stat_files {
  my ($payload) = @_;
  my $time = now();
  my $records = '';
  for my $path (split /\0/, $payload) {
    $records .= record_of($path);
    if (length $records >= $CHUNK) { put('s', $records); $records = '' }
  }
  put('s', $records);
  put('.', $time);
}

# Opens a plain file; what it is else, as a record.
sub open_file {
  my ($fd, $name) = @_;
  # SECURITY: looked at before, because opening a device can do things; and after, because it may have been swapped.
  my $record = record($fd, $name);
  return (undef, $record) if $record !~ /^f/;
  my $file = open_at($fd, $name, $AS_FILE);
  return (undef, $! == $ENOENT ? $MISSING : $BARRED) if $file < 0;
  open my $handle, '<&=', $file or exit 71;
  $record = record($file, $nothing);
  return ($record =~ /^f/ ? $handle : undef, $record);
}

sub send_content {
  my ($handle, $left) = @_;
  while ($left > 0) {
    my $got = sysread $handle, my $bytes, $left < $CHUNK ? $left : $CHUNK;
    last if !$got;
    put('d', $bytes);
    $left -= $got;
  }
}

# Of each path what it is, and of plain files within the limit the content.
sub get_files {
  my ($limit, $paths) = unpack 'Q> a*', $_[0];
  my $time = now();
  for my $path (split /\0/, $paths) {
    my ($folder, $name) = part($path);
    my $fd = defined $name ? folder($folder) : -1;
    my $is_missing = defined $name && $fd < 0 && $! == $ENOENT;
    my ($handle, $record) = $fd >= 0 ? open_file($fd, $name) : (undef, $is_missing ? $MISSING : $BARRED);
    put('f', $record);
    send_content($handle, size_of($record)) if defined $handle && size_of($record) <= $limit;
  }
  put('.', $time);
}

sub send_entries {
  my ($path, $entries) = @_;
  my $head = pack 'n/a*', $path;
  my $records = '';
  for my $entry (@$entries) {
    $records .= pack('n/a*', $entry->[0]) . $entry->[1];
    if (length $records >= $CHUNK) { put('D', $head . $records); $records = '' }
  }
  put('D', $head . $records) if $records ne '';
}

sub list_folder {
  my ($limit, $path) = unpack 'N a*', $_[0];
  if ($path ne '') { part($path) or refuse() }
  my $fd = folder($path);
  fail($! == $ENOENT ? 'm' : 'r') if $fd < 0;
  my $names = names_in($fd) or fail('r');
  if (@$names > $limit) { $! = 0; fail('l') }
  send_entries($path, [map { [$_, record($fd, $_)] } @$names]);
  put('.', '');
}

# A walk is data, so that it can be continued by a later request.
sub start_walk {
  my ($limit, @ignored) = @_;
  return { left => $limit, ignored => { map { $_ => 1 } @ignored }, todo => [''] };
}

# The entries of the next folder that is still there: its path, and [name, record]s. Nothing at the end.
sub next_folder {
  my ($walk) = @_;
  while (@{ $walk->{todo} }) {
    my $path = pop @{ $walk->{todo} };
    my $fd = folder($path);
    next if $fd < 0;
    my $names = names_in($fd) or next;
    my @entries = map { [$_, record($fd, $_)] } @$names;
    @entries = grep { $_->[1] =~ /^[^-x]/ && !($walk->{ignored}{ $_->[0] } && $_->[1] =~ /^d/) } @entries;
    $walk->{left} -= @entries;
    if ($walk->{left} < 0) { $! = 0; fail('l') }
    my $prefix = $path eq '' ? '' : "$path/";
    push @{ $walk->{todo} }, grep { length $_ < $LONGEST_PATH }
      map { $prefix . $_->[0] } grep { $_->[1] =~ /^d/ } reverse @entries;
    return ($path, \@entries);
  }
  return;
}

sub walk_all {
  my ($limit, $ignored) = unpack 'N a*', $_[0];
  my $walk = start_walk($limit, split /\0/, $ignored);
  my ($youngest, $began) = (0, join '.', map { sprintf '%09d', $_ } unpack 'q<q<', now());
  while (my ($path, $entries) = next_folder($walk)) {
    for my $entry (@$entries) {
      my $changed = sprintf '%09d.%09d', unpack 'x19 q<V', $entry->[1];
      $youngest = $changed if $changed gt $youngest;
    }
    send_entries($path, $entries);
  }
  # What changes after this answer shall have another time than what changed before it.
  select undef, undef, undef, $TICK if $youngest + $TICK >= $began;
  put('.', '');
}

# ---- archives

sub archive_portion {
  my ($what) = @_;
  if ($what eq 'close') { delete $archives{$id}; return put('.', "\0") }
  if ($what eq 'open') {
    refuse() if keys %archives >= $ARCHIVES;
    $archives{$id} = { walk => start_walk(0xffffffff), entries => [] };
  }
  my $archive = $archives{$id} or refuse();
  my $sent = 0;
  while ($sent < $PORTION) {
    if (defined $archive->{handle}) { $sent += send_more($archive); next }
    my $entry = shift @{ $archive->{entries} };
    if (!defined $entry) {
      my ($path, $entries) = next_folder($archive->{walk});
      if (!defined $path) { delete $archives{$id}; return put('.', "\0") }
      @$archive{qw(path entries)} = ($path, $entries);
      next;
    }
    $sent += 512 + archive_entry($archive, @$entry);
  }
  put('.', "\1");
}

sub send_more {
  my ($archive) = @_;
  my $want = $archive->{size} < $CHUNK ? $archive->{size} : $CHUNK;
  my $got = $want > 0 ? sysread($archive->{handle}, my $bytes, $want) : 0;
  if (!$got) { close delete $archive->{handle}; return 0 }
  put('d', $bytes);
  $archive->{size} -= $got;
  return $got;
}

sub archive_entry {
  my ($archive, $name, $record) = @_;
  my ($fd, $target) = (folder($archive->{path}), '');
  return 0 if $fd < 0;
  if ($record =~ /^f/) {
    (my $handle, $record) = open_file($fd, $name);
    return 0 if !defined $handle;
    @$archive{qw(handle size)} = ($handle, size_of($record));
  } elsif ($record =~ /^l/) {
    $target = "\0" x 4096;
    my $length = syscall $READLINKAT, $fd, $name, $target, 4096;
    return 0 if $length <= 0;
    $target = substr $target, 0, $length;
  } elsif ($record !~ /^d/) {
    return 0;
  }
  my $path = $archive->{path} eq '' ? $name : "$archive->{path}/$name";
  put('E', pack('n/a* n/a*', $path, $target) . $record);
  return length $path;
}

# ---- changing: contents are staged beside the root first, so that a full disk or a bad path changes nothing

my $staging = ".hotcell-staging-$root_name-$$";

sub remove_flat {
  my ($name) = @_;
  my $fd = open_at($parent, $name, $AS_FOLDER);
  if ($fd >= 0) {
    for my $file (@{ names_in($fd) || [] }) { syscall $UNLINKAT, $fd, $file, 0 }
    syscall $CLOSE, $fd;
  }
  return syscall($UNLINKAT, $parent, $name, $fd >= 0 ? $AT_REMOVEDIR : 0) == 0;
}

# What a helper that was killed has left.
sub remove_leftovers {
  for my $name (@{ names_in($parent) || [] }) { remove_flat($name) if $name =~ /^\.hotcell-staging-\Q$root_name\E-\d+$/ }
}

sub end_batch {
  return if !$batch;
  syscall $CLOSE, $batch->{fd};
  undef $batch;
  remove_flat($staging);
}

# The modes and sizes of the files whose contents follow.
sub begin_batch {
  my ($payload) = @_;
  end_batch();
  if (syscall($MKDIRAT, $parent, $staging, 0700) != 0) {
    fail('r') if $! != $EEXIST || !remove_flat($staging) || syscall($MKDIRAT, $parent, $staging, 0700) != 0;
  }
  my $fd = open_at($parent, $staging, $AS_FOLDER);
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
  return pack('n', 1) . $MISSING;
}

# Only if nothing is in it any more.
sub remove_folder {
  my ($step) = @_;
  my ($fd, $name) = (folder($step->{folder}), $step->{name});
  my $is_gone = $fd >= 0 && syscall($UNLINKAT, $fd, $name, $AT_REMOVEDIR) == 0;
  if ($is_gone) { undo_in($step, sub { syscall $MKDIRAT, $_[0], $name, 0755 }) }
  forget_folders(1);
  return pack('n', $is_gone ? 1 : 0) . $MISSING;
}

sub remove_made {
  my ($path) = @_;
  my ($folder, $name) = part($path);
  my $fd = folder($folder);
  syscall $UNLINKAT, $fd, $name, $AT_REMOVEDIR if $fd >= 0;
  forget_folders(1);
}

# ---- requests

my %HANDLERS = (
  S => \&stat_files, G => \&get_files, L => \&list_folder, W => \&walk_all, T => \&archive_portion,
  B => \&begin_batch, M => \&describe_files, C => \&stage, X => \&commit,
  P => sub { $batch->{plan} .= $_[0]; put('a', '') },
);

eval { open_root(); remove_leftovers() };
while ((my $type, $id, my $payload) = next_frame()) {
  my $handler = $HANDLERS{$type} or exit 70;
  my $continues = $type =~ /[MCPX]/;
  # What is still under way of a batch that has failed.
  next if $continues && !($batch && $batch->{id} == $id);
  if (!eval { open_root() if !$continues || $type eq 'X'; $handler->($payload); 1 }) {
    my $error = $@;
    die $error if !ref $error;
    end_batch() if $batch && $batch->{id} == $id;
    put('!', pack 'a1NN', @$error{qw(why index errno)});
  }
  flush();
}
end_batch();
