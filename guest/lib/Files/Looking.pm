# Requests that look: at records, contents and folders.
package Files::Looking;
use strict;
use Exporter 'import';
use Files::Folders qw(BARRED LONGEST_PATH MISSING folder names_in now open_file part record record_of size_of);
use Files::Frames qw(fail put refuse);
our @EXPORT_OK = qw(get_files list_folder next_folder start_walk stat_files walk_all);

my ($ENOENT, $CHUNK, $TICK) = (2, 65536, 0.012);

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

sub send_content {
  my ($handle, $left) = @_;
  while ($left > 0) {
    my $got = sysread $handle, my ($bytes), $left < $CHUNK ? $left : $CHUNK;
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
    my ($handle, $record) = $fd >= 0 ? open_file($fd, $name) : (undef, $is_missing ? MISSING : BARRED);
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
    push @{ $walk->{todo} }, grep { length $_ < LONGEST_PATH }
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

1;
