/** Programs that are clients of the egress proxy, for languages whose clients are libraries. Each gets the URL first. */

export const goSource = `package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	answer, err := (&http.Client{Transport: transport}).Get(os.Args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	text, _ := io.ReadAll(answer.Body)
	fmt.Println(answer.Status, string(text))
}
`;

export const pythonUrllib = `
import ssl, sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], context=ssl._create_unverified_context(), timeout=20).read().decode())
`;
export const pythonRequests = `
import sys
from pip._vendor import requests
from pip._vendor.urllib3 import disable_warnings
disable_warnings()
print(requests.get(sys.argv[1], verify=False, timeout=20).text)
`;
export const nodeFetch = `
const answer = await fetch(process.argv[2]);
console.log(answer.status, await answer.text());
`;

export const pythonHttpx = `
import sys, httpx
print(httpx.get(sys.argv[1], verify=False, timeout=20).text)
`;

/** One call; the proxy is found in the variables. Messages are plain bytes, so there is nothing to generate. */
export const pythonGrpc = `
import sys, grpc
creds = grpc.ssl_channel_credentials(open(sys.argv[2], 'rb').read())
same = lambda message: message
say = grpc.secure_channel(sys.argv[1], creds).unary_unary('/demo.Echo/Say', same, same)
print(say(b'grpc-works', timeout=20).decode())
`;

export const pythonWebsocket = `
import ssl, sys, websocket
socket = websocket.create_connection(sys.argv[1], timeout=20, sslopt={'cert_reqs': ssl.CERT_NONE})
print(socket.recv())
socket.close()
`;

/** Takes the proxy as its second word: Java reads no variables. */
export const javaSource = `
import java.net.*;
import java.net.http.*;
import java.security.cert.X509Certificate;
import javax.net.ssl.*;

public class JavaClient {
  public static void main(String[] words) throws Exception {
    String[] proxy = words[1].split(":");
    TrustManager trusting = new X509TrustManager() {
      public void checkClientTrusted(X509Certificate[] chain, String kind) {}
      public void checkServerTrusted(X509Certificate[] chain, String kind) {}
      public X509Certificate[] getAcceptedIssuers() { return new X509Certificate[0]; }
    };
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, new TrustManager[] { trusting }, null);
    HttpClient client = HttpClient.newBuilder()
      .sslContext(context)
      .proxy(ProxySelector.of(new InetSocketAddress(proxy[0], Integer.parseInt(proxy[1]))))
      .build();
    HttpRequest request = HttpRequest.newBuilder(URI.create(words[0])).build();
    HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
    System.out.println(answer.statusCode() + " " + answer.version() + " " + answer.body());
  }
}
`;
