// The dashboard has no service worker. One that is registered is that of a program which had this port while no collector ran.

export async function removeWorkers() {
  try {
    const found = await navigator.serviceWorker?.getRegistrations() ?? [];
    await Promise.all(found.map((one) => one.unregister()));
    // What it has answered so far cannot be trusted.
    if (found.length > 0 && navigator.serviceWorker.controller) location.reload();
  } catch {
    // Browsers without them refuse to be asked.
  }
}
