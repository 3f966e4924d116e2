import { MirrorError, systemCode } from '../../core/errors.ts'
import { servingProcess } from '../../store/database/lock.ts'
import { type GlobalOptions, print, printJson, settings } from '../context.ts'

/**
 * `patchmirror reload`: has the daemon of this data folder read its settings and files again. Settings that cannot be used
 * are refused here already, before the daemon is signalled.
 */
export function reloadCommand(options: GlobalOptions & { json?: boolean }): number {
  const { config } = settings(options, false)
  const { dir } = config.data
  const pid = servingProcess(dir)
  if (pid === null)
    throw new MirrorError(
      'usage',
      `no daemon serves ${dir} (data.dir): name the settings of the daemon with --config FILE`,
    )
  try {
    process.kill(pid, 'SIGHUP')
  } catch (error) {
    const why =
      systemCode(error) === 'EPERM'
        ? 'this user may not signal it: run the command as the user of the daemon'
        : 'it is not a process of this machine or container: run the command where the daemon runs'
    throw new MirrorError('usage', `process ${pid} serves ${dir}, but ${why}`, { cause: error })
  }
  const next = 'its log names what is in force and what needs a restart'
  if (options.json === true) printJson({ signalled: pid, next })
  else print(`process ${pid} reads its settings again; ${next}`)
  return 0
}
