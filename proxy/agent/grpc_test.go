// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/serin-dev/serin/proxy/proxytest"
	"github.com/serin-dev/serin/traffic"
)

// calls is a gRPC server that says in each header who it is, and counts calls by
// the HTTP status that they are to be counted by.
type calls struct {
	pb.UnimplementedTestServiceServer
	service string
	address *net.TCPAddr
	mu      sync.Mutex
	ended   map[string]int
	begun   int
}

func startCalls(t *testing.T, service string) *calls {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &calls{service: service, address: l.Addr().(*net.TCPAddr), ended: map[string]int{}}
	server := grpc.NewServer(grpc.UnaryInterceptor(c.unary), grpc.StreamInterceptor(c.stream),
		grpc.MaxRecvMsgSize(64<<20), grpc.MaxSendMsgSize(64<<20))
	pb.RegisterTestServiceServer(server, c)
	go server.Serve(l) //nolint:errcheck // ends with the test
	t.Cleanup(server.Stop)
	return c
}

func (c *calls) destination(weight int32) traffic.Destination {
	return traffic.Destination{Service: c.service, Address: c.address.IP.String(), Port: int32(c.address.Port), Weight: weight}
}

func (c *calls) unary(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	c.begin()
	if err := c.introduce(ctx, func(md metadata.MD) error { return grpc.SetHeader(ctx, md) }); err != nil {
		return nil, err
	}
	if err := grpc.SetTrailer(ctx, metadata.Pairs("last", c.service)); err != nil {
		return nil, err
	}
	response, err := handler(ctx, request)
	c.end(err)
	return response, err
}

func (c *calls) stream(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	c.begin()
	if err := c.introduce(stream.Context(), stream.SetHeader); err != nil {
		return err
	}
	err := handler(service, stream)
	c.end(err)
	return err
}

// introduce answers with who this is and with the client's own metadata.
func (c *calls) introduce(ctx context.Context, set func(metadata.MD) error) error {
	md, _ := metadata.FromIncomingContext(ctx)
	return set(metadata.MD{"backend": {c.service}, "said": md.Get("said"), "said-bin": md.Get("said-bin"), "authority": md.Get(":authority")})
}

func (c *calls) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun++
}

func (c *calls) end(err error) {
	code := map[codes.Code]string{
		codes.Unknown: "500", codes.DeadlineExceeded: "504", codes.Unimplemented: "501", codes.Internal: "500",
		codes.Unavailable: "503", codes.DataLoss: "500",
	}[status.Code(err)]
	if code == "" {
		code = "200"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended[code]++
}

func (c *calls) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.ended)
}

func (c *calls) started() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun
}

func (c *calls) UnaryCall(ctx context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	if s := in.GetResponseStatus(); s != nil {
		return nil, status.Error(codes.Code(s.GetCode()), s.GetMessage())
	}
	if in.GetFillUsername() { // to hang until the client's deadline
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return &pb.SimpleResponse{Payload: &pb.Payload{Body: make([]byte, in.GetResponseSize())}}, nil
}

func (c *calls) StreamingOutputCall(in *pb.StreamingOutputCallRequest, stream grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
	for _, p := range in.GetResponseParameters() {
		if err := stream.Send(&pb.StreamingOutputCallResponse{Payload: &pb.Payload{Body: make([]byte, p.GetSize())}}); err != nil {
			return err
		}
	}
	if s := in.GetResponseStatus(); s != nil {
		return status.Error(codes.Code(s.GetCode()), s.GetMessage())
	}
	return nil
}

func (c *calls) StreamingInputCall(stream grpc.ClientStreamingServer[pb.StreamingInputCallRequest, pb.StreamingInputCallResponse]) error {
	total := 0
	for {
		in, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&pb.StreamingInputCallResponse{AggregatedPayloadSize: int32(total)})
		}
		if err != nil {
			return err
		}
		total += len(in.GetPayload().GetBody())
	}
}

func (c *calls) FullDuplexCall(stream grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error {
	for {
		in, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&pb.StreamingOutputCallResponse{Payload: in.GetPayload()}); err != nil {
			return err
		}
	}
}

// dialCalls opens a client on the proxy. All its calls go on one connection.
func dialCalls(t *testing.T, r *rig) pb.TestServiceClient {
	t.Helper()
	return pb.NewTestServiceClient(connectCalls(t, r))
}

func connectCalls(t *testing.T, r *rig) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(fmt.Sprintf("passthrough:///127.0.0.1:%d", r.port), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)), grpc.WithAuthority("calls.shop"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// callee makes a short call and returns who answered.
func callee(ctx context.Context, client pb.TestServiceClient) (string, error) {
	var header metadata.MD
	_, err := client.UnaryCall(ctx, &pb.SimpleRequest{ResponseSize: 10}, grpc.Header(&header))
	return strings.Join(header.Get("backend"), ","), err
}

func TestCallsOfOneConnectionAreSplitOneByOne(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable, canary := startCalls(t, "calls-stable"), startCalls(t, "calls-canary")
	client := dialCalls(t, r)
	for _, step := range []struct{ stable, canary int32 }{{100, 0}, {80, 20}, {0, 100}} {
		r.want(t, traffic.ProtocolHTTP2, stable.destination(step.stable), canary.destination(step.canary))
		const n = 2000
		got := map[string]int{}
		for range n {
			who, err := callee(t.Context(), client)
			if err != nil {
				t.Fatal(err)
			}
			got[who]++
		}
		if !within(n, got["calls-canary"], float64(step.canary)/100) || got["calls-stable"]+got["calls-canary"] != n {
			t.Errorf("with %d %% for the canary the calls went to %v", step.canary, got)
		}
	}
	if err := r.shutdown(t); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]int{"calls-stable": stable.counts(), "calls-canary": canary.counts()}
	if diff := cmp.Diff(want, r.requests(t)); diff != "" {
		t.Errorf("counts differ from what the backends answered (-want +got):\n%s", diff)
	}
}

func TestCallsArriveAsTheyWereMade(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	r.want(t, traffic.ProtocolHTTP2, startCalls(t, "calls-stable").destination(1))
	client := dialCalls(t, r)
	t.Run("metadata, trailers and the authority", func(t *testing.T) {
		var header, trailer metadata.MD
		ctx := metadata.AppendToOutgoingContext(t.Context(), "said", "a", "said", "b", "said-bin", "\x00\xff")
		if _, err := client.UnaryCall(ctx, &pb.SimpleRequest{}, grpc.Header(&header), grpc.Trailer(&trailer)); err != nil {
			t.Fatal(err)
		}
		got := metadata.MD{"said": header["said"], "said-bin": header["said-bin"], "authority": header["authority"], "last": trailer["last"]}
		want := metadata.MD{"said": {"a", "b"}, "said-bin": {"\x00\xff"}, "authority": {"calls.shop"}, "last": {"calls-stable"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("a status with its message", func(t *testing.T) {
		_, err := client.UnaryCall(t.Context(), &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Code: int32(codes.NotFound), Message: "no bird; 100 %"}})
		if s := status.Convert(err); s.Code() != codes.NotFound || s.Message() != "no bird; 100 %" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("messages of 32 MiB in both directions", func(t *testing.T) {
		const size = 32 << 20
		response, err := client.UnaryCall(t.Context(), &pb.SimpleRequest{Payload: &pb.Payload{Body: make([]byte, size)}, ResponseSize: size})
		if err != nil || len(response.GetPayload().GetBody()) != size {
			t.Errorf("got %d bytes, %v", len(response.GetPayload().GetBody()), err)
		}
	})
	t.Run("a deadline reaches the backend and ends the call", func(t *testing.T) {
		// The backend ends the call at the same moment as the client, which is 502 to a client that is late.
		call := func() codes.Code {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := client.UnaryCall(ctx, &pb.SimpleRequest{FillUsername: true})
			return status.Code(err)
		}
		proxytest.Eventually(t, "a call ends at its deadline", func() bool {
			code := call()
			if code != codes.DeadlineExceeded && code != codes.Unavailable {
				t.Fatalf("got %v", code)
			}
			return code == codes.DeadlineExceeded
		})
	})
	t.Run("a stream of answers", func(t *testing.T) {
		stream, err := client.StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{
			ResponseParameters: []*pb.ResponseParameters{{Size: 1}, {Size: 100000}, {Size: 3}}, ResponseStatus: &pb.EchoStatus{Code: int32(codes.Aborted)},
		})
		if err != nil {
			t.Fatal(err)
		}
		var sizes []int
		for {
			var response *pb.StreamingOutputCallResponse
			if response, err = stream.Recv(); err != nil {
				break
			}
			sizes = append(sizes, len(response.GetPayload().GetBody()))
		}
		if diff := cmp.Diff([]int{1, 100000, 3}, sizes); diff != "" || status.Code(err) != codes.Aborted {
			t.Errorf("%v %s", err, diff)
		}
	})
	t.Run("a stream of requests", func(t *testing.T) {
		stream, err := client.StreamingInputCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if err := stream.Send(&pb.StreamingInputCallRequest{Payload: &pb.Payload{Body: make([]byte, 10000)}}); err != nil {
				t.Fatal(err)
			}
		}
		response, err := stream.CloseAndRecv()
		if err != nil || response.GetAggregatedPayloadSize() != 1000000 {
			t.Errorf("got %v %v", response, err)
		}
	})
	t.Run("messages to and fro", func(t *testing.T) { converse(t, talk(t, client), 20) })
	t.Run("more calls at once than nginx lets by itself", func(t *testing.T) {
		var conversations []grpc.BidiStreamingClient[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]
		for range 300 {
			conversations = append(conversations, talk(t, client))
		}
		for _, c := range conversations {
			converse(t, c, 1)
		}
	})
}

// talk begins a conversation.
func talk(t *testing.T, client pb.TestServiceClient) grpc.BidiStreamingClient[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse] {
	t.Helper()
	stream, err := client.FullDuplexCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// converse sends messages, each once the answer to the one before is there.
func converse(t *testing.T, stream grpc.BidiStreamingClient[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse], times int) {
	t.Helper()
	for i := range times {
		said := fmt.Sprintf("message %d", i)
		if err := stream.Send(&pb.StreamingOutputCallRequest{Payload: &pb.Payload{Body: []byte(said)}}); err != nil {
			t.Fatal(err)
		}
		response, err := stream.Recv()
		if err != nil || string(response.GetPayload().GetBody()) != said {
			t.Fatalf("got %v %v, want %q back", response, err, said)
		}
	}
}

// A conversation goes on where it began, through new weights and reloads, while the
// calls that begin after them go where they should.
func TestAConversationStaysWhereItBegan(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable, canary := startCalls(t, "calls-stable"), startCalls(t, "calls-canary")
	client := dialCalls(t, r)
	r.want(t, traffic.ProtocolHTTP2, stable.destination(1), canary.destination(0))
	conversation := talk(t, client)
	converse(t, conversation, 2)
	for name, destinations := range map[string][]traffic.Destination{
		"new weights": {stable.destination(0), canary.destination(1)},
		"a reload":    {canary.destination(1)},
	} {
		r.want(t, traffic.ProtocolHTTP2, destinations...)
		converse(t, conversation, 2)
		for range 20 {
			if who, err := callee(t.Context(), client); err != nil || who != "calls-canary" {
				t.Fatalf("after %s a new call goes to %q, %v", name, who, err)
			}
		}
	}
	if err := conversation.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := conversation.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the conversation ended with %v", err)
	}
	header, err := conversation.Header()
	if err != nil || header.Get("backend")[0] != "calls-stable" {
		t.Errorf("it was with %v %v", header.Get("backend"), err)
	}
}

// TestNoCallIsLostWhileBackendsChange makes calls without a pause while nginx is
// reloaded. GOAWAY tells a client which of its calls nginx never took.
func TestNoCallIsLostWhileBackendsChange(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{drain: time.Second, settle: 50 * time.Millisecond})
	stable, canary := startCalls(t, "calls-stable"), startCalls(t, "calls-canary")
	r.want(t, traffic.ProtocolHTTP2, stable.destination(1))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	answers := make([]int, 4)
	for i := range answers {
		conn := connectCalls(t, r)
		client := pb.NewTestServiceClient(conn)
		wg.Go(func() {
			defer conn.Close() //nolint:errcheck // or its connection would wait for further calls
			for ctx.Err() == nil {
				if _, err := callee(context.WithoutCancel(ctx), client); err != nil {
					t.Errorf("after %d calls: %v", answers[i], err)
					return
				}
				answers[i]++
			}
		})
	}
	for range 5 {
		r.want(t, traffic.ProtocolHTTP2, stable.destination(1), canary.destination(1))
		r.want(t, traffic.ProtocolHTTP2, stable.destination(1))
	}
	cancel()
	wg.Wait()
	if err := r.shutdown(t); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, n := range answers {
		total += n
	}
	want := map[string]map[string]int{"calls-stable": stable.counts(), "calls-canary": canary.counts()}
	if diff := cmp.Diff(want, r.requests(t)); diff != "" {
		t.Errorf("counts differ from what the backends answered (-want +got):\n%s", diff)
	}
	if got := stable.counts()["200"] + canary.counts()["200"]; got != total || total < 500 {
		t.Errorf("the backends answered %d calls, the clients got %d answers; want the same, and at least 500", got, total)
	}
}

// A connection that a previous nginx accepted so late that it never says GOAWAY on it is
// served by the present weights all the same, and its requests are counted once.
func TestAConnectionToAPreviousNginxIsServedByTheLiveWeights(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable, canary := startCalls(t, "calls-stable"), startCalls(t, "calls-canary")
	r.want(t, traffic.ProtocolHTTP2, stable.destination(1), canary.destination(0))
	waiting, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", r.port)) // and says nothing yet
	if err != nil {
		t.Fatal(err)
	}
	proxytest.Eventually(t, "nginx has accepted it", func() bool { return r.connections(t) > 1 })
	r.want(t, traffic.ProtocolHTTP2, canary.destination(1))
	conn, err := grpc.NewClient("passthrough:///calls.shop", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return waiting, nil }))
	if err != nil {
		t.Fatal(err)
	}
	client := pb.NewTestServiceClient(conn)
	for range 10 {
		if who, err := callee(t.Context(), client); err != nil || who != "calls-canary" {
			t.Fatalf("a call goes to %q, %v", who, err)
		}
	}
	conversation := talk(t, client)
	converse(t, conversation, 3)
	if err := conversation.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := conversation.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the conversation ended with %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.shutdown(t); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]int{"calls-canary": {"200": 11}}
	if diff := cmp.Diff(want, r.requests(t)); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestFailedCallsCountAsFailures(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable := startCalls(t, "calls-stable")
	r.want(t, traffic.ProtocolHTTP2, stable.destination(1))
	client := dialCalls(t, r)
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		want := &pb.EchoStatus{Code: int32(code)}
		if _, err := client.UnaryCall(t.Context(), &pb.SimpleRequest{ResponseStatus: want}); status.Code(err) != code {
			t.Errorf("%s: got %v", code, err)
		}
		// After a message, the status is in a trailer instead of in the header.
		stream, err := client.StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{
			ResponseParameters: []*pb.ResponseParameters{{Size: 1}}, ResponseStatus: want,
		})
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = stream.Recv()
		}
		if got := status.Code(err); got != code && (code != codes.OK || !errors.Is(err, io.EOF)) {
			t.Errorf("%s: got %v", code, err)
		}
	}
	want := map[string]map[string]int{"calls-stable": {"200": 22, "500": 6, "501": 2, "503": 2, "504": 2}}
	proxytest.Eventually(t, "all calls are counted", func() bool { return cmp.Equal(want, r.requests(t)) })
	if diff := cmp.Diff(want["calls-stable"], stable.counts()); diff != "" {
		t.Errorf("the backend counts otherwise (-want +got):\n%s", diff)
	}
}

func TestACallThatIsGivenUpEndsAtTheBackend(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	stable := startCalls(t, "calls-stable")
	r.want(t, traffic.ProtocolHTTP2, stable.destination(1))
	client := dialCalls(t, r)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := client.UnaryCall(ctx, &pb.SimpleRequest{FillUsername: true})
		done <- err
	}()
	proxytest.Eventually(t, "the call has begun", func() bool { return stable.started() == 1 })
	cancel()
	if err := <-done; status.Code(err) != codes.Canceled {
		t.Errorf("got %v", err)
	}
	proxytest.Eventually(t, "the backend has noticed", func() bool { return stable.counts()["200"] == 1 })
	proxytest.Eventually(t, "it is counted as given up by the client", func() bool { return r.requests(t)["calls-stable"]["499"] == 1 })
}

// clearHTTP2 is a client of HTTP/2 without TLS that is not gRPC.
func clearHTTP2(t *testing.T) *http.Client {
	t.Helper()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// startHTTP2 serves HTTP/2 without TLS.
func startHTTP2(t *testing.T, service string, handler http.Handler) *backend {
	t.Helper()
	return startBackendWith(t, service, handler, func(s *http.Server) {
		s.Protocols = &http.Protocols{}
		s.Protocols.SetUnencryptedHTTP2(true)
	})
}

func TestRequestsOfHTTP2ArriveAsTheyWereSent(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	r.want(t, traffic.ProtocolHTTP2, startHTTP2(t, "web-stable", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Sum")
		w.Header().Set("Server", "mine")
		w.Header().Set("X-Accel-Redirect", "/secret")
		w.WriteHeader(http.StatusTeapot)
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s %s %s %s %q", r.Method, r.RequestURI, r.Proto, r.Host, r.Header.Get("X-Forwarded-For"), body)
		w.Header().Set("Sum", "7")
	})).destination(1))
	client := clearHTTP2(t)
	for _, test := range []struct{ method, body, want string }{
		{http.MethodGet, "", `GET //a/%2e%2e/b?x=%20&y=a+b HTTP/2.0 web.shop 1.2.3.4, 127.0.0.1 ""`},
		{http.MethodPost, "five!", `POST //a/%2e%2e/b?x=%20&y=a+b HTTP/2.0 web.shop 1.2.3.4, 127.0.0.1 "five!"`},
		{"BREW", "", `BREW //a/%2e%2e/b?x=%20&y=a+b HTTP/2.0 web.shop 1.2.3.4, 127.0.0.1 ""`},
	} {
		t.Run(test.method, func(t *testing.T) {
			// Without a length, as a stream.
			request, err := http.NewRequestWithContext(t.Context(), test.method, r.url("//a/%2e%2e/b?x=%20&y=a+b"), io.NopCloser(strings.NewReader(test.body)))
			if err != nil {
				t.Fatal(err)
			}
			request.Host = "web.shop"
			request.Header.Set("X-Forwarded-For", "1.2.3.4")
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if err != nil || string(body) != test.want {
				t.Errorf("the backend saw %s %v\nwant             %s", body, err, test.want)
			}
			got := []string{response.Status, response.Header.Get("Server"), response.Header.Get("X-Accel-Redirect"), response.Trailer.Get("Sum")}
			if diff := cmp.Diff([]string{"418 I'm a teapot", "mine", "/secret", "7"}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoBackendToServeHTTP2(t *testing.T) {
	t.Parallel()
	r := startRig(t, rigOptions{})
	gone := startCalls(t, "calls-stable")
	r.want(t, traffic.ProtocolHTTP2, gone.destination(0))
	if _, err := callee(t.Context(), dialCalls(t, r)); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v, want Unavailable", err)
	}
}

// connections is how many clients the present nginx has accepted, this question among
// them.
func (r *rig) connections(t *testing.T) int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(r.dir.Current(), "status.sock"))
	}}}
	response, err := client.Get("http://nginx/connections")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var n int
	if _, err := fmt.Fscanf(response.Body, "Active connections: %d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}
