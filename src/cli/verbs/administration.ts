import { CONFIG } from '../after-texts.ts'
import { JSON_FLAG, type Verb } from './verb.ts'

/** Commands about settings. */
export const CONFIG_VERBS: readonly Verb[] = [
  {
    path: 'config',
    summary: 'the settings in force and where each came from',
    options: [JSON_FLAG],
    forms: [
      {
        options: [['--check <file>', 'all problems of a file of settings, with the environment over it'], JSON_FLAG],
        load: async () => (await import('../mirror/config.ts')).checkConfigCommand,
      },
      {
        options: [['--schema', 'the JSON Schema of a file of settings, for editors'], JSON_FLAG],
        load: async () => (await import('../mirror/config.ts')).configSchemaCommand,
      },
      {
        options: [['--reload', 'have the running daemon read its settings and files again'], JSON_FLAG],
        load: async () => (await import('../mirror/reload.ts')).reloadCommand,
      },
    ],
    after: CONFIG,
    example: 'config --check /etc/patchmirror.yaml',
    load: async () => (await import('../mirror/config.ts')).configCommand,
  },
]
