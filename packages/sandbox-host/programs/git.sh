# Runs git with its arguments inside a sandbox; exits with 127 if there is none. The owner is src/tool/git/run-git.ts.
#
# A commit needs a name. If neither the environment nor git's configuration has one, it is the agent's.
command -v git >/dev/null || exit 127
case $1 in commit | pull)
  [ -n "$GIT_AUTHOR_NAME" ] || git config user.name >/dev/null || export GIT_AUTHOR_NAME=agent
  [ -n "$GIT_COMMITTER_NAME" ] || git config user.name >/dev/null || export GIT_COMMITTER_NAME=agent
  [ -n "$GIT_AUTHOR_EMAIL" ] || git config user.email >/dev/null || export GIT_AUTHOR_EMAIL=agent@turnbox.invalid
  [ -n "$GIT_COMMITTER_EMAIL" ] || git config user.email >/dev/null || export GIT_COMMITTER_EMAIL=agent@turnbox.invalid
esac
exec git -c safe.directory='*' -c color.ui=false --no-pager "$@"
