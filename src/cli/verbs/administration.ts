import { JSON_FLAG, type Verb } from './verb.ts'

/** Commands about settings. */
export const CONFIG_VERBS: readonly Verb[] = [
  {
    path: 'config',
    summary: 'the settings in force and where each came from',
    options: [JSON_FLAG],
    example: 'config --json',
    load: async () => (await import('../mirror/config.ts')).configCommand,
  },
  {
    path: 'config check',
    arguments: '<file>',
    summary: 'check a file of settings, with the environment over it: all problems at once; exit status 2 for any',
    options: [JSON_FLAG],
    example: 'config check /etc/patchmirror.yaml',
    load: async () => (await import('../mirror/config.ts')).checkConfigCommand,
  },
  {
    path: 'config schema',
    summary: 'print the JSON Schema of a file of settings, for editors',
    example: 'config schema',
    load: async () => (await import('../mirror/config.ts')).configSchemaCommand,
  },
]
