# All files, portion by portion.
package Files::Archives;
use strict;
use Exporter 'import';
use Files::Folders qw(folder open_file size_of);
use Files::Frames qw(put refuse);
use Files::Looking qw(next_folder start_walk);
use Kernel 'kernel_numbers';
our @EXPORT_OK = qw(archive_portion);

my ($READLINKAT) = kernel_numbers('readlinkat');
my $CHUNK = 65536;
# How much of an archive is sent for one request, and how many archives may be under way.
my ($PORTION, $ARCHIVES) = (524288, 8);
my %archives;

sub archive_portion {
  my ($what, $id) = @_;
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

1;
