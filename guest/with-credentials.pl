# Starts an agent with credentials: perl with-credentials.pl HOME -- COMMAND ARGS…
# They come first on stdin, so that no command line, no setting of the cell and no log has them: a line with a number of
# bytes, then that many. README.md has the format. Sets the variables, writes the files below HOME, and becomes the
# command; what follows on stdin is the command's: not one byte too many is read. Ends with 125 when something is wrong.
# No modules but what perl-base has.
# SECURITY: no message has a value in it. Files go where they are said to go and nowhere else: each folder on the way is
# entered by its name alone, is looked at once more inside, and no link is followed.
use strict;
use Fcntl;

my ($ENOENT, $EINTR, $EEXIST) = (2, 4, 17);
my ($MOST_BYTES, $MOST_FIELDS) = (16 * 1024 * 1024, 4096);

sub refuse { print STDERR "with-credentials.pl: $_[0]\n"; exit 125 }

sub read_exactly {
  my ($count) = @_;
  my $bytes = '';
  while (length $bytes < $count) {
    my $got = sysread STDIN, $bytes, $count - length $bytes, length $bytes;
    if (!defined $got) { next if $! == $EINTR; refuse("stdin cannot be read: $!") }
    refuse('stdin ended too early') if $got == 0;
  }
  return $bytes;
}

sub read_length {
  my $digits = '';
  for (;;) {
    my $byte = read_exactly(1);
    last if $byte eq "\n" && length $digits;
    refuse('stdin does not begin with a number of bytes') if $byte !~ /^[0-9]\z/ || length $digits == 8;
    $digits .= $byte;
  }
  refuse('there are more bytes than credentials can have') if $digits > $MOST_BYTES;
  return $digits;
}

# ---- the fields

my ($payload, $at, $taken) = ('', 0, 0);

sub next_field {
  my $end = index $payload, "\n", $at;
  my $digits = $end == -1 ? '' : substr $payload, $at, $end - $at;
  refuse('a field has no length') if $digits !~ /^[0-9]{1,8}\z/;
  refuse('a field is cut off') if $end + 1 + $digits > length $payload;
  refuse('there are too many fields') if ++$taken > $MOST_FIELDS;
  $at = $end + 1 + $digits;
  return substr $payload, $end + 1, $digits;
}

sub next_count {
  my $count = next_field();
  refuse('a field is not the number that it should be') if $count !~ /^[0-9]{1,4}\z/;
  return $count;
}

# ---- files

sub enter {
  my ($name) = @_;
  my @before = lstat $name;
  refuse("a folder on the way cannot be entered: $!") if !@before;
  refuse('something on the way is no folder') if ($before[2] & 0170000) != 0040000;
  chdir $name or refuse("a folder on the way cannot be entered: $!");
  my @after = lstat '.';
  refuse('a folder on the way was changed') if $before[0] != $after[0] || $before[1] != $after[1];
}

sub make_and_enter {
  my ($name) = @_;
  mkdir $name, 0700 or $! == $EEXIST or refuse("a folder cannot be made: $!");
  enter($name);
}

sub write_file {
  my ($name, $mode, $content) = @_;
  sysopen my $file, $name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, $mode or refuse("a file cannot be made: $!");
  chmod $mode, $file or refuse("a file cannot be made: $!");
  my $done = 0;
  while ($done < length $content) {
    my $put = syswrite $file, $content, length($content) - $done, $done;
    if (!defined $put) { next if $! == $EINTR; refuse("a file cannot be written: $!") }
    $done += $put;
  }
  close $file or refuse("a file cannot be written: $!");
}

# ---- what is asked for

my ($home, $dashes, @command) = @ARGV;
refuse('usage: with-credentials.pl HOME -- COMMAND ARGS…') if !@command || $dashes ne '--' || $home !~ m{^/[^/]};
$payload = read_exactly(read_length());

my (%variables, @files);
for (1 .. next_count()) {
  my ($name, $value) = next_field() =~ /^([A-Za-z_][A-Za-z0-9_]*)=([^\0]*)\z/s or refuse('a field is no variable');
  $variables{$name} = $value;
}
for (1 .. next_count()) {
  my ($path, $mode, $content) = (next_field(), next_field(), next_field());
  my @names = split m{/}, $path, -1;
  refuse('a path is not one below the home folder') if !@names || grep { $_ eq '' || $_ eq '.' || $_ eq '..' || /\0/ } @names;
  refuse('a mode is neither 400 nor 600') if $mode !~ /^[46]00\z/;
  push @files, { names => \@names, mode => oct $mode, content => $content };
}
refuse('there are bytes after the last field') if $at != length $payload;

opendir my $here, '.' or refuse("the folder to work in cannot be read: $!");
my ($parent, $own) = $home =~ m{^(.*?)/+([^/]+)/*\z} or refuse('HOME is no folder');
refuse('HOME has dots to resolve') if "/$home/" =~ m{/\.\.?/};
chdir($parent eq '' ? '/' : $parent) or refuse("the folder of HOME cannot be entered: $!");
make_and_enter($own);
chmod 0700, '.' or refuse("HOME belongs to somebody else: $!");
opendir my $base, '.' or refuse("HOME cannot be read: $!");
for my $file (@files) {
  my @names = @{ $file->{names} };
  my $last = pop @names;
  chdir $base or refuse("HOME cannot be entered: $!");
  make_and_enter($_) for @names;
  write_file($last, $file->{mode}, $file->{content});
}
chdir $here or refuse("the folder to work in cannot be entered: $!");
closedir $base;
closedir $here;

%ENV = (%ENV, %variables, HOME => $home);
{ local $^W = 0; exec { $command[0] } @command }
my $why = $! + 0;
print STDERR "with-credentials.pl: $command[0] cannot be run: $!\n";
exit($why == $ENOENT ? 127 : 126);
