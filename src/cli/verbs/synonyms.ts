/** Words that people try, with the command that does it: words of other programs, and former names of commands. */
const SYNONYMS: Readonly<Record<string, string>> = {
  start: 'serve',
  run: 'serve',
  up: 'serve',
  get: 'show',
  info: 'show',
  log: 'runs',
  login: 'whoami',
  version: '--version',
  fix: 'doctor --data --repair',
  ls: 'list',
  records: 'list records',
  query: 'search TEXT',
  diff: 'changes SINCE',
  'list images': 'list tags',
  'list vulnerabilities': 'list records',
  'config show': 'config',
  gc: 'fleet check --gc',
  // Former names.
  record: 'show NAME',
  tags: 'list tags',
  patches: 'list patches',
  findings: 'list findings',
  since: 'list records',
  acknowledge: 'approve',
  verify: 'doctor --data',
  support: 'doctor --save FILE',
  health: 'status --live',
  digest: 'status --digest',
  reload: 'config --reload',
  keygen: 'bundle keygen FILE',
  export: 'bundle export FILE',
  import: 'bundle import FILE',
  inspect: 'bundle inspect FILE',
  need: 'bundle need FILE',
  identity: 'bundle inspect',
  'fleet log': 'fleet status --log',
  'fleet release': 'fleet rollback --end',
  'fleet gc': 'fleet check --gc',
  'relay status': 'relay',
  'relay enable': 'relay --enable TARGET',
  'relay secret': 'relay --secret',
  'users list': 'users',
  'api-keys show': 'api-keys list ID',
  'subscriptions show': 'subscriptions list ID',
  'webhooks show': 'webhooks inbox ID',
  'webhooks dead-letters': 'webhooks inbox --state dead',
  'webhooks replay': 'webhooks resolve --replay ID',
  'webhooks dismiss': 'webhooks resolve --dismiss ID',
  'webhooks send': 'webhooks test --url URL',
  'webhooks doctor': 'webhooks check FILE',
  'config check': 'config --check FILE',
  'config schema': 'config --schema',
}

/** Returns the command that does what these words of a command line ask for, also in the singular; null where no synonym is known. */
export function successorOf(words: readonly string[]): string | null {
  const name = words.join(' ')
  const known = [name, `${name}s`].find((one) => Object.hasOwn(SYNONYMS, one))
  return known === undefined ? null : (SYNONYMS[known] ?? null)
}

/** Lists the synonyms with the commands that they stand for. */
export function listSynonyms(): readonly (readonly [words: string, command: string])[] {
  return Object.entries(SYNONYMS)
}
