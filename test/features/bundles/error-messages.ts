/** Runs a command in this process with these settings alone: its exit code, or the code of what it threw, and all it said. */
export async function spoken(
  env: Record<string, string>,
  command: () => number | Promise<number>,
): Promise<{ code: number | string; said: string }> {
  const before = process.env
  const write = process.stdout.write.bind(process.stdout)
  const tell = process.stderr.write.bind(process.stderr)
  let said = ''
  process.stdout.write = process.stderr.write = (text: string | Uint8Array) => {
    said += String(text)
    return true
  }
  process.env = env
  try {
    return { code: await command(), said }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error
    return { code: String(error.code), said: said + error.message }
  } finally {
    process.stdout.write = write
    process.stderr.write = tell
    process.env = before
  }
}
