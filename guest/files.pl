# The files of a workspace: perl files.pl ROOT
# Answers framed requests on stdin, one after the other, with the rights of the cell's user. Ends with its input, or when
# nobody has asked for a while. No modules but ours and what perl-base has. A frame is as with agent.pl: one byte of type, the
# number of the request and the length of what follows, both as four bytes, highest first. Paths are below ROOT.
#   S paths, parted by NUL          -> s records, in order; . and the clock of file times
#   G limit (8 bytes), paths        -> for each f record, d content; . and the clock
#   L most entries (4 bytes), path  -> D path, then names with records; .
#   W most entries, ignored names   -> the same for all folders below ROOT; .
#   T open, next or close           -> a portion of all files: E path, link target, record; d content; . and 1 for more
#   B, M modes and sizes; C their contents; P steps -> a for each; X carries out the steps -> w results; .
# In place of . an answer may end with ! and what is wrong. A record is what `record` makes.
use strict;
BEGIN { unshift @INC, $0 =~ m{^(.*/)} ? "$1lib" : 'lib' }
use Files::Archives 'archive_portion';
use Files::Changes qw(begin_batch commit describe_files end_batch is_batch plan_steps remove_leftovers stage);
use Files::Folders qw(open_root work_below);
use Files::Frames qw(flush next_frame put);
use Files::Looking qw(get_files list_folder stat_files walk_all);
use Kernel 'kernel_numbers';

my ($PRCTL) = kernel_numbers('prctl');
my $SET_DUMPABLE = 4;

work_below(@ARGV ? $ARGV[0] : '') or die "files.pl: no folder\n";
# SECURITY: otherwise another program of the same user could write our answers.
syscall $PRCTL, $SET_DUMPABLE, 0, 0, 0, 0;
umask 022;

my %HANDLERS = (
  S => \&stat_files, G => \&get_files, L => \&list_folder, W => \&walk_all, T => \&archive_portion,
  B => \&begin_batch, M => \&describe_files, C => \&stage, P => \&plan_steps, X => \&commit,
);

eval { open_root(); remove_leftovers() };
while (my ($type, $id, $payload) = next_frame()) {
  my $handler = $HANDLERS{$type} or exit 70;
  my $continues = $type =~ /[MCPX]/;
  # What is still under way of a batch that has failed.
  next if $continues && !is_batch($id);
  if (!eval { open_root() if !$continues || $type eq 'X'; $handler->($payload, $id); 1 }) {
    my $error = $@;
    die $error if !ref $error;
    end_batch() if is_batch($id);
    put('!', pack 'a1NN', @$error{qw(why index errno)});
  }
  flush();
}
end_batch();
