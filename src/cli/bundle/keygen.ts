import { createKeyFiles } from '../../bundle/format/keys.ts'
import { type GlobalOptions, print, printJson } from '../runner.ts'

/** `patchmirror keygen FILE`: a key pair for bundles. It needs no settings and touches no data folder. */
export function keygenCommand(file: string, options: GlobalOptions & { json?: boolean }): number {
  const { id, line } = createKeyFiles(file)
  if (options.json === true) {
    printJson({ id, signingKey: file, trustedKey: `${file}.pub`, line })
    return 0
  }
  print(`key ${id} is made`)
  print(`  ${file}      signs: keep it above the gap and secret (bundle.signingKeys)`)
  print(`  ${file}.pub  verifies: carry it below the gap (bundle.trustedKeys), or this line:`)
  print(line)
  return 0
}
