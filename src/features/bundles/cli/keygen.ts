import { createKeyFiles } from '../format/keys.ts'
import { type GlobalOptions, print, printJson } from '../../../cli/context.ts'
import { refuseUnwritable } from './files.ts'

/** `patchmirror bundle keygen FILE`: a key pair for bundles. It needs no settings and touches no data folder. */
export function keygenCommand(file: string, options: GlobalOptions & { json?: boolean }): number {
  refuseUnwritable(file)
  const { id, line } = createKeyFiles(file)
  if (options.json === true) {
    printJson({ id, signingKey: file, trustedKey: `${file}.pub`, line })
    return 0
  }
  print(`created key ${id}`)
  print(`  ${file}      signs, and must stay secret: bundle.signingKeys of mirrors that export or publish`)
  print(`  ${file}.pub  verifies: bundle.trustedKeys of mirrors that import or follow; this line does as well:`)
  print(line)
  return 0
}
