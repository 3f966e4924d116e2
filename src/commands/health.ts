import { messageOf } from '../errors.ts'
import { askDaemon } from './daemon.ts'
import { type GlobalOptions, print, settings } from './setup.ts'

/** `patchmirror health [--ready]`: asks the daemon of these settings; 0 when it says yes. For container health checks. */
export async function healthCommand(options: GlobalOptions & { ready?: boolean }): Promise<number> {
  const { config } = settings(options, false, [])
  const path = options.ready === true ? '/-/ready' : '/-/health'
  try {
    const { status, text } = await askDaemon(config, path, 5_000)
    print(text)
    return status >= 200 && status < 300 ? 0 : 1
  } catch (error) {
    print(`no daemon answers: ${messageOf(error)}`)
    return 1
  }
}
