# The walls of a run as data: what the server planned, done step by step. A step that fails ends everything before any
# code of a user runs.
package Nest::Walls;
use strict;
use Exporter 'import';
our @EXPORT_OK = qw(lay_walls read_walls);

# The parts of a plan, each with its steps: first PID 1 of a run, then its program, then PID 1 while it waits.
my @PARTS = qw(first program keeper);

sub read_walls {
  my ($text) = @_;
  my @words = split /\0/, $text, -1;
  my %plan = (clone => 0 + shift @words, flags => 0 + shift @words, workdir => shift @words);
  for my $part (@PARTS) {
    for (1 .. shift @words) {
      my ($kind, $label, $count) = splice @words, 0, 3;
      push @{$plan{$part}}, [$kind, $label, map { read_word($_) } splice @words, 0, $count];
    }
  }
  return \%plan;
}

# A word as the kernel takes it; a reference stands for what differs from run to run.
sub read_word {
  my ($type, $value) = unpack 'a1 a*', $_[0];
  return 0 + $value if $type eq 'n';
  return pack 'H*', $value if $type eq 'h';
  return $value =~ /\{(?:id|host)\}/ ? \$value : $value if $type eq 't';
  return {fact => $value} if $type eq 'r';
  if ($type eq 'f') {
    # struct sock_fprog: how many instructions, and where. The program must live as long as the plan.
    my $program = pack 'H*', $value;
    return {program => $program, header => pack 'S x6 P', length($program) / 8, $program};
  }
  die "a word of type $type\n";
}

sub fill {
  my ($word, $facts) = @_;
  return $word if !ref $word;
  return $word->{header} if ref $word eq 'HASH' && exists $word->{header};
  return 0 + $facts->{$word->{fact}} if ref $word eq 'HASH';
  (my $text = $$word) =~ s/\{(id|host)\}/$facts->{$1}/g;
  return $text;
}

sub lay_walls {
  my ($steps, $facts) = @_;
  for my $step (@$steps) {
    my ($kind, $label, @words) = @$step;
    @words = map { fill($_, $facts) } @words;
    if ($kind eq 'write') { write_file($label, @words); next }
    # What one step returns may be a word of another.
    $facts->{$label} = syscall shift @words, @words;
    die "$label: $!\n" if $facts->{$label} == -1;
  }
}

sub write_file {
  my ($label, $path, $text) = @_;
  sysopen my $file, $path, 1 or die "$label: $!\n";
  defined syswrite $file, $text or die "$label: $!\n";
  close $file or die "$label: $!\n";
}

1;
