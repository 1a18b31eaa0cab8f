/** Debian's python3 may lack ensurepip: then the pip of the system installs into the environment. */
export const PIP_INSTALL = [
  '[ -x .venv/bin/python ] || python3 -m venv .venv 2>/dev/null || python3 -m venv --clear --without-pip .venv || exit',
  'if [ -x .venv/bin/pip ]; then .venv/bin/pip install -r requirements.txt',
  'else python3 -m pip --python .venv/bin/python install -r requirements.txt; fi',
].join('\n');
