import type { Command } from 'commander'
import { type Add, type Flag, finish, global } from './verbs.ts'

/** What carries the mirror to where no network leads. */
export function addBundles(add: Add, json: Flag): void {
  add('keygen <file>', 'make a key pair that signs bundles: FILE and FILE.pub').action(
    async (file: string, _, command: Command) => {
      const { keygenCommand } = await import('./bundle/keygen.ts')
      await finish(keygenCommand(file, global(command)))
    },
  )
  add('export <file>', 'write what is mirrored into a signed bundle')
    .option(
      '--since <state>',
      'only what changed since an export, by its sequence or a snapshot id',
    )
    .option('--for <need>', 'only what a mirror lacks that wrote this need file')
    .option('--sources <names>', 'of these sources alone, separated by commas')
    .option('--split <size>', 'cut it into parts of this size, such as 4 GB')
    .option('--expires <days>', 'another validity than bundle.expireDays; 0: for ever')
    .option('--force', 'replace a bundle of this name')
    .option('--unsigned', 'without a signature: anybody could have made it')
    .option(...json)
    .action(async (file: string, _, command: Command) => {
      const { exportCommand } = await import('./bundle/export.ts')
      await finish(exportCommand(file, global(command)))
    })
  add('inspect <file...>', 'what a bundle says of itself; nothing is imported')
    .option('--verify', 'read every byte of it')
    .option(...json)
    .action(async (files: string[], _, command: Command) => {
      const { inspectCommand } = await import('./bundle/inspect.ts')
      await finish(inspectCommand(files, global(command)))
    })
  addImports(add, json)
}

function addImports(add: Add, json: Flag): void {
  add('import <file...>', 'take in bundles, or the parts of one, in the order of their sequence')
    .option('--dry-run', 'say what would change, store nothing')
    .option('--allow-rollback', 'also what is older than what is held; the log says so')
    .option('--allow-unsigned', 'also what nobody signed: anybody could have made it')
    .option('--again', 'write everything anew from a full bundle: what a disk damaged')
    .option('--offline', 'make sure of it: any attempt to connect is an error')
    .option(...json)
    .action(async (files: string[], _, command: Command) => {
      const { importCommand } = await import('./bundle/import.ts')
      await finish(importCommand(files, global(command)))
    })
  add('need <file>', 'write down what is held here, for "export --for" above the gap')
    .option('--brief', 'only which state: a kilobyte, for a mirror above that still knows it')
    .option('--sources <names>', 'of these sources alone, separated by commas; repeat it above')
    .option('--force', 'replace a file of this name')
    .action(async (file: string, _, command: Command) => {
      const { needCommand } = await import('./bundle/need.ts')
      await finish(needCommand(file, global(command)))
    })
  add('identity', 'who this mirror is in the bundles that it exports')
    .option('--new', 'be another from now on: after a backup was restored, or a data folder copied')
    .action(async (_, command: Command) => {
      const { identityCommand } = await import('./bundle/identity.ts')
      await finish(identityCommand(global(command)))
    })
  add('digest', 'one hash over all that is served: equal on both sides of a gap')
    .option(...json)
    .action(async (_, command: Command) => {
      const { digestCommand } = await import('./bundle/need.ts')
      await finish(digestCommand(global(command)))
    })
}
