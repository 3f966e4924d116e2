import { join } from 'node:path'
import { restoreBackup } from '../restore.ts'
import { counted } from '../../../base/text.ts'
import { secretFilePath } from '../../../config/kinds/webhooks.ts'
import { RELAY_DAYS } from '../../../store/webhooks/outbox.ts'
import { type GlobalOptions, firstStep, print, printJson, settings, warn } from '../../../cli/context.ts'

/** Options of `patchmirror restore`. */
interface RestoreCommandOptions extends GlobalOptions {
  newIdentity?: boolean
  json?: boolean
}

/** `patchmirror restore FILE`: a backup into an empty data folder. */
export async function restoreCommand(path: string, options: RestoreCommandOptions): Promise<number> {
  const { config } = settings(options, false, [])
  const { dir } = config.data
  const newIdentity = options.newIdentity === true
  const restored = await restoreBackup({ path, dataDir: dir, newIdentity, now: Date.now })
  const { manifest, identity, dropped } = restored
  const secrets = secretFilePath(config)
  const restoredSecrets = join(dir, 'webhook-secrets.json')
  if (secrets !== restoredSecrets && manifest.files.some(({ name }) => name === 'webhook-secrets.json'))
    warn(`the webhook secrets are in ${restoredSecrets}; move them to ${secrets}`)
  if (options.json === true) {
    printJson({ ...manifest, identity, dropped })
    return 0
  }
  print(`${dir}: restored as of ${manifest.createdAt}, each file as the backup has it, by ${manifest.program}`)
  print(`  state digest ${manifest.digest ?? 'none'}; identity ${identity}${newIdentity ? ' (new)' : ''}`)
  if (manifest.private) print(`  it has no data yet: ${firstStep(config)}`)
  if (dropped.relayed + dropped.received > 0)
    print(
      `  older than ${counted(RELAY_DAYS, 'day')}, so not announced any more: ` +
        `${counted(dropped.relayed, 'event')} to relay, ${counted(dropped.received, 'received delivery', 'received deliveries')}`,
    )
  if (!newIdentity)
    print(
      '  if the old mirror may still run, stop one of them, or run "patchmirror bundle inspect --new-identity" here',
    )
  return 0
}
