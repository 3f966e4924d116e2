import { writeBackup } from '../write.ts'
import { secretFilePath } from '../../../config/kinds/webhooks.ts'
import { shownBytes } from '../../../base/disk-space.ts'
import { VERSION } from '../../../base/version.ts'
import { refuseUnwritable } from '../../bundles/cli/files.ts'
import { type GlobalOptions, print, printJson, settings } from '../../../cli/context.ts'

/** Options of `patchmirror backup`. */
interface BackupCommandOptions extends GlobalOptions {
  private?: boolean
  force?: boolean
  json?: boolean
}

/** `patchmirror backup FILE`: both databases, keys and webhook secrets in one checked file, beside a running daemon. */
export async function backupCommand(path: string, options: BackupCommandOptions): Promise<number> {
  const { config } = settings(options, false, [])
  refuseUnwritable(path)
  const report = await writeBackup({
    dataDir: config.data.dir,
    path,
    force: options.force === true,
    now: Date.now,
    isPrivate: options.private === true,
    secretFile: secretFilePath(config),
    program: `patchmirror/${VERSION}`,
  })
  if (options.json === true) {
    printJson(report)
    return 0
  }
  const { files, digest } = report.manifest
  print(`${path}: ${files.map(({ name }) => name).join(', ')}, ${shownBytes(report.bytes)}, read back as written`)
  if (report.manifest.private)
    print('  only keys, secrets, identity, ledger and deliveries: a sync or a full bundle adds the data')
  else print(`  state digest ${digest ?? 'none: nothing is mirrored yet'}`)
  print('  it keeps contents as they are: "patchmirror doctor --data" checks them')
  print('  it contains secrets: store it where only you may read it')
  return 0
}
