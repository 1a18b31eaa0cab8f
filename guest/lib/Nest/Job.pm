# A job as it comes on standard input: fields of a length in decimal, a line feed, and the bytes (guest/README.md).
package Nest::Job;
use strict;
use Exporter 'import';
our @EXPORT_OK = qw(read_job write_file);

sub fail {
  my ($reason) = @_;
  syswrite STDERR, "hotcell: $reason\n";
  exit 70;
}

sub take {
  my ($size) = @_;
  my $bytes = '';
  while (length $bytes < $size) {
    sysread STDIN, $bytes, $size - length $bytes, length $bytes or fail('the job frame ends early');
  }
  return $bytes;
}

sub field {
  my ($head) = @_;
  $head //= '';
  until ($head =~ /\n\z/) {
    $head .= take(1);
    fail('bad job frame') if length $head > 12;
  }
  fail('bad job frame') if $head !~ /\A[0-9]+\n\z/;
  return take(0 + $head);
}

sub many {
  my $count = field();
  fail('bad job frame') if $count !~ /\A[0-9]+\z/;
  return 1 .. $count;
}

# Waits for the job, writes its code to `$file` and its files beside it.
sub read_job {
  my ($file) = @_;
  sysread STDIN, my $first, 1 or exit 0;
  put($file, field($first));
  my $job = {args => [map { field() } many()]};
  $job->{env} = {map { /^([^=]*)=(.*)\z/s ? ($1, $2) : () } map { field() } many()};
  my ($folder) = $file =~ m{^(.*)/};
  extra($folder) for many();
  return $job;
}

sub extra {
  my ($folder) = @_;
  my $name = field();
  my $content = field();
  fail('bad path in the job frame') if $name eq '' || $name =~ m{^/} || grep { $_ eq '..' } split m{/}, $name;
  my @folders = split m{/+}, $name;
  my $last = pop @folders;
  for (@folders) {
    $folder .= "/$_";
    -d $folder or mkdir $folder or fail("a folder of the job cannot be made: $!");
  }
  put("$folder/$last", $content);
}

sub put {
  my ($path, $content) = @_;
  eval { write_file($path, $content); 1 } or fail("a file of the job cannot be written: $@");
}

sub write_file {
  my ($path, $content) = @_;
  sysopen my $file, $path, 01 | 0100 | 01000, 0644 or die "$!\n";
  while (length $content) { substr $content, 0, syswrite($file, $content) // die("$!\n"), '' }
  close $file or die "$!\n";
}

1;
