import { JSON_FLAG, type Verb } from '../../cli/verbs/verb.ts'

/** The commands of this feature. */
export const SCANNER_VERBS: readonly Verb[] = [
  {
    path: 'export-db',
    arguments: '<scanner> <dir>',
    summary: 'write the offline database of osv-scanner or renovate',
    options: [['--ecosystem <name...>', 'only these; else all, and what is gone is removed'], JSON_FLAG],
    example: 'export-db osv-scanner /var/lib/osv-db --ecosystem npm',
    load: async () => (await import('./cli/export-db.ts')).exportDbCommand,
  },
]
